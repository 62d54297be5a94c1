// Compares the shapes of records. Arrays of another shape that have as many values would pass for the right ones, with
// their values in another order: images whose channels come last, for example.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace disttrain::input {

// Sizes of 1 don't change the order of values.
inline std::vector<std::uint64_t> without_ones(std::vector<std::uint64_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), std::uint64_t{1}), shape.end());
  return shape;
}

// Whether all values stand in one row, so that the shape says nothing of their order.
inline bool is_flat(const std::vector<std::uint64_t>& shape) {
  return without_ones(shape).size() < 2;
}

// Whether records of one shape can stand for those of the other, if both have as many values. A flat record fits each
// shape.
inline bool have_same_order(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  return is_flat(a) || is_flat(b) || without_ones(a) == without_ones(b);
}

}  // namespace disttrain::input
