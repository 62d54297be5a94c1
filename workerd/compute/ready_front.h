// Turns "this many elements of this variable are final" into the ranges that Engine::compute announces: without gaps,
// from the front of the flat array. A variable that is final before those in front of it waits for them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/layout.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

class ReadyFront {
 public:
  ReadyFront() = default;
  explicit ReadyFront(const Layout& layout);

  // Begins a step: no element is final. `ready` may be empty and must outlive the step.
  void begin(const RangeReady& ready);

  // The first `elements` elements of the variable are final; grows up to its element count.
  void final_until(std::uint32_t variable, std::uint64_t elements);
  void final_whole(std::uint32_t variable);

 private:
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t elements = 0;
    std::uint64_t final_elements = 0;
  };

  std::vector<Place> places_;          // in flat order
  std::vector<std::size_t> place_of_;  // of each variable, index into places_
  const RangeReady* ready_ = nullptr;
  std::size_t place_ = 0;        // the first variable that isn't wholly announced
  std::uint64_t announced_ = 0;  // flat elements
};

}  // namespace disttrain::workerd
