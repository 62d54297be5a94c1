#pragma once

#include <cstdint>

namespace disttrain {

// Positions from `begin` up to, but not including, `end`. A position is an index into an epoch's permutation of the
// records.
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const Interval&) const = default;
};

}  // namespace disttrain
