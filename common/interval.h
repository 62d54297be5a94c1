#pragma once

#include <cstdint>

namespace disttrain {

// Half-open range of positions in an epoch's permutation of the records.
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const Interval&) const = default;
};

}  // namespace disttrain
