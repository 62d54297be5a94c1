// Sequences of tokens of different lengths, and the arrays of a data set that are made of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workerd/input/dataset.h"
#include "workerd/input/large_array.h"
#include "workerd/input/typed_values.h"

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

// An array that a data set makes of a column of tokens. It has the tokens of each record or, with with_length, their
// number.
struct TokenArray {
  std::string name;
  std::size_t column = 0;  // number of the column among those of tokens
  bool has_lengths = false;
  std::uint64_t length = 1;  // the most tokens of a record
  std::int32_t pad = 0;
  std::int64_t largest = 0;  // no value is larger
  bool is_ragged = false;    // those who take any array get the records without padding (ColumnSpec::ragged)
};

DatasetColumn column_of(const TokenArray& array);

// The number of tokens of the records [begin, end).
std::vector<std::uint32_t> lengths_of(const TokenRows& rows, std::uint64_t begin, std::uint64_t end);

// Writes the array's values of `records` records to `to`, one record after the other. row_of(i) are the tokens of
// record i. If to.as is ragged, records aren't padded.
template <typename RowOf>
void write_tokens(const TokenArray& array, std::size_t records, const RowOf& row_of, const ColumnOut& to) {
  with_type(to.as.dtype, to.out, [&]<typename T>(std::span<T> out) {
    const std::uint64_t width = element_count(to.as);
    T* at = out.data();
    for (std::size_t i = 0; i < records; ++i) {
      const std::span<const std::int32_t> row = row_of(i);
      if (array.has_lengths) {
        *at++ = static_cast<T>(row.size());
        continue;
      }
      at = std::transform(row.begin(), row.end(), at, [](std::int32_t id) { return static_cast<T>(id); });
      if (to.as.ragged)
        to.row_ends[i] = static_cast<std::uint64_t>(at - out.data());
      else
        at = std::fill_n(at, width - row.size(), static_cast<T>(array.pad));
    }
  });
}

}  // namespace disttrain::input
