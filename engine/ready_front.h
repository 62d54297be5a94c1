// Tells the caller of Computation::step which gradients are final. For each variable, in any order, the model reports
// how many words of the variable are final. ReadyFront turns these reports into ranges of the flat array, in
// ascending order and without gaps. For example, if the second variable is final before the first one, ReadyFront
// announces both when the first one is final.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/layout.h"
#include "engine/computation.h"

namespace disttrain::workerd {

class ReadyFront {
 public:
  ReadyFront() = default;
  explicit ReadyFront(const Layout& layout);

  // Begins a step: no word is final yet. During the step the functions below call `ready` for each new range of final
  // words. `ready` may be empty, and it must outlive the step.
  void begin(const RangeReady& ready);

  // The mean loss of the step's records. If it isn't finite as a float32, as the worker reports it, nothing more is
  // announced in this step (EngineSink::ready()).
  void note_loss(double mean) {
    if (!std::isfinite(static_cast<float>(mean))) ready_ = nullptr;
  }

  // The first `words` words of the variable are final. From call to call in one step the number may only grow.
  void final_until(std::uint32_t variable, std::uint64_t words);
  void final_whole(std::uint32_t variable);

 private:
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t words = 0;
    std::uint64_t final_words = 0;
  };

  std::vector<Place> places_;          // one for each variable, in the order of the flat array
  std::vector<std::size_t> place_of_;  // for each variable, its index in places_
  const RangeReady* ready_ = nullptr;
  std::size_t place_ = 0;        // index in places_ of the first variable that isn't completely announced
  std::uint64_t announced_ = 0;  // number of flat words that were announced
};

}  // namespace disttrain::workerd
