// Sequences of tokens of different lengths, and the arrays of a data set that are made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workerd/input/dataset.h"
#include "workerd/input/large_array.h"

namespace disttrain::input {

// The sequences of one column, one after the other. Sequence i ends before ids[ends[i]].
struct TokenRows {
  LargeArray<std::int32_t> ids;
  LargeArray<std::uint64_t> ends;

  std::span<const std::int32_t> row(std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return {ids.data() + begin, ends[i] - begin};
  }
  void clear() {
    ids.clear();
    ends.clear();
  }
  // Of their memory.
  std::uint64_t bytes() const {
    return ids.capacity() * sizeof(std::int32_t) + ends.capacity() * sizeof(std::uint64_t);
  }
};

// What a data set makes of a column of tokens: an array of the tokens, or one of their numbers (with_length).
struct TokenArray {
  std::string name;
  std::size_t column = 0;  // number of the column among those of tokens
  bool has_lengths = false;
  std::uint64_t length = 1;  // the most tokens of a record
  std::int32_t pad = 0;
  std::int64_t largest = 0;  // no value is larger
};

DatasetColumn column_of(const TokenArray& array);

// Writes the array's values of one record, whose tokens are `row`, to `out`.
template <typename T>
void write_tokens(const TokenArray& array, std::span<const std::int32_t> row, std::span<T> out) {
  if (array.has_lengths) {
    out.front() = static_cast<T>(row.size());
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i) out[i] = static_cast<T>(row[i]);
  for (std::size_t i = row.size(); i < out.size(); ++i) out[i] = static_cast<T>(array.pad);
}

}  // namespace disttrain::input
