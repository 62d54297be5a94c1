// Compares lists within lists, as jsonl and Parquet have them, with the shape of a numeric column. A decoder appends
// all their elements in their order, so that a list of another shape with as many elements would pass for the column's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disttrain::input {

// The lists of one record's value. Use it from one thread.
class ListShape {
 public:
  void start() {
    sizes_.clear();
    value_depth_.reset();
    is_regular_ = true;
  }

  // A list, which is within `depth` others, has so many elements.
  void note_list(std::size_t depth, std::uint64_t elements) {
    if (depth >= sizes_.size()) sizes_.resize(depth + 1);
    if (!sizes_[depth]) sizes_[depth] = elements;
    is_regular_ = is_regular_ && *sizes_[depth] == elements;
  }
  // A number is within `depth` lists.
  void note_value(std::size_t depth) {
    if (!value_depth_) value_depth_ = depth;
    is_regular_ = is_regular_ && *value_depth_ == depth;
  }

  // Whether the lists have this shape, sizes of 1 apart. One list alone fits each shape, and so does a shape of less
  // than two sizes each lists. Doesn't count the elements: that is ColumnEncoder's task.
  bool fits(const std::vector<std::uint32_t>& shape) const {
    if (shape.size() < 2 || sizes_.size() < 2 || !value_depth_) return true;
    std::vector<std::uint64_t> found;
    for (const auto& size : sizes_)
      if (*size != 1) found.push_back(*size);
    std::vector<std::uint64_t> expected;
    for (const std::uint32_t size : shape)
      if (size != 1) expected.push_back(size);
    return is_regular_ && (found.size() < 2 || found == expected);
  }

 private:
  std::vector<std::optional<std::uint64_t>> sizes_;  // of the lists within so many others
  std::optional<std::size_t> value_depth_;
  bool is_regular_ = true;  // all lists within as many others have the same size, and all numbers the same depth
};

// "lists of the shape [28, 28], or one list of all values".
inline std::string lists_of_shape(const std::vector<std::uint32_t>& shape) {
  std::string text;
  for (const std::uint32_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "lists of the shape [" + text + "], or one list of all values";
}

}  // namespace disttrain::input
