// Sequences of tokens of different lengths, and the arrays of a data set that are made of them. A column of bytes is a
// column of tokens, too: its tokens are the bytes of a value, and take 1 byte each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "input/dataset.h"
#include "input/large_array.h"
#include "input/typed_values.h"

namespace disttrain::input {

// One sequence. Only the span of the column's kind is used.
struct TokenRow {
  std::span<const std::int32_t> ids;
  std::span<const std::uint8_t> raw;

  std::size_t size() const { return ids.size() + raw.size(); }
};

// The sequences of one column, one after the other. Sequence i ends before element ends[i] of `ids` or `raw`.
struct TokenRows {
  LargeArray<std::int32_t> ids;  // of a column of tokens
  LargeArray<std::uint8_t> raw;  // of a column of bytes
  LargeArray<std::uint64_t> ends;

  TokenRow row(std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    const std::uint64_t size = ends[i] - begin;
    if (ids.empty()) return {{}, {raw.data() + begin, size}};
    return {{ids.data() + begin, size}, {}};
  }
  void clear() {
    ids.clear();
    raw.clear();
    ends.clear();
  }
  // Of their memory.
  std::uint64_t bytes() const {
    return ids.capacity() * sizeof(std::int32_t) + raw.capacity() + ends.capacity() * sizeof(std::uint64_t);
  }
  std::uint64_t used_bytes() const {
    return ids.size() * sizeof(std::int32_t) + raw.size() + ends.size() * sizeof(std::uint64_t);
  }
};

// An array that a data set makes of a column of tokens or bytes. It has the tokens of each record or, with with_length,
// their number.
struct TokenArray {
  std::string name;
  std::size_t column = 0;  // number of the column among those of tokens and bytes
  // kInt32: tokens, or their number. kUint8: bytes. kBytes: bytes that stay as they are; then the array is ragged.
  DType dtype = DType::kInt32;
  bool has_lengths = false;
  std::uint64_t length = 1;  // the most tokens of a record
  std::int32_t pad = 0;
  std::int64_t largest = 0;  // no value is larger
  bool is_ragged = false;    // those who take any array get the records without padding (ColumnSpec::ragged)
};

DatasetColumn column_of(const TokenArray& array);

// The number of tokens of the records [begin, end).
std::vector<std::uint32_t> lengths_of(const TokenRows& rows, std::uint64_t begin, std::uint64_t end);

// Writes the array's values of `records` records to `to`, one record after the other. row_of(i) is the TokenRow of
// record i. If to.as is ragged, records aren't padded.
template <typename RowOf>
void write_tokens(const TokenArray& array, std::size_t records, const RowOf& row_of, const ColumnOut& to) {
  std::span<std::byte> values = to.out;
  if (to.strings != nullptr) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < records; ++i) bytes += row_of(i).size();
    to.strings->resize(bytes);
    values = *to.strings;
  }
  with_type(to.as.dtype, values, [&]<typename T>(std::span<T> out) {
    const std::uint64_t width = element_count(to.as);
    T* at = out.data();
    const auto put = [&at](const auto& row) {
      at = std::transform(row.begin(), row.end(), at, [](auto token) { return static_cast<T>(token); });
    };
    for (std::size_t i = 0; i < records; ++i) {
      const TokenRow row = row_of(i);
      if (array.has_lengths) {
        *at++ = static_cast<T>(row.size());
        continue;
      }
      put(row.ids);
      put(row.raw);
      if (to.as.ragged)
        to.row_ends[i] = static_cast<std::uint64_t>(at - out.data());
      else
        at = std::fill_n(at, width - row.size(), static_cast<T>(array.pad));
    }
  });
}

}  // namespace disttrain::input
