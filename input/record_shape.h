// Compares the shapes of records. Arrays of another shape that have as many values would pass for the right ones, with
// their values in another order: images whose channels come last, for example.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace disttrain::input {

// Sizes of 1 don't change the order of values.
inline std::vector<std::uint64_t> without_ones(std::vector<std::uint64_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), std::uint64_t{1}), shape.end());
  return shape;
}

// Into how many parts a shape divides the values of a record: [3, 32, 16] has 3 channels, and 96 rows in all of them.
// Values in one row have no parts.
inline std::set<std::uint64_t> part_counts(const std::vector<std::uint64_t>& shape) {
  std::set<std::uint64_t> counts;
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) counts.insert(count *= size);
  counts.erase(1);      // the record
  counts.erase(count);  // its values
  return counts;
}

// Whether records of one shape can stand for those of the other, if both have as many values. A shape that only divides
// the parts of the other one further has the same order: [3, 1024] is [3, 32, 32] in fewer dimensions, and a flat
// record fits each shape. But [32, 32, 3] has its channels last.
inline bool have_same_order(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  const std::set<std::uint64_t> of_a = part_counts(a);
  const std::set<std::uint64_t> of_b = part_counts(b);
  return std::includes(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) ||
         std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end());
}

}  // namespace disttrain::input
