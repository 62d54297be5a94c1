// A block of decoded records, column by column. The decoders of the formats (csv, tfrecord, libsvm, jsonl, ...) make
// tables. [data.columns] says which columns of a table the model gets, and what becomes of their values.
//
// A table holds only the columns that the job uses, so a decoder gets their names and the type that it should make.
// Text isn't copied: its values point into the block of bytes from which the table was decoded. Only text that the
// block has in another form, such as a string with escapes, is copied into `texts`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace disttrain::input {

enum class ValueKind : std::uint8_t { kFloat, kInteger, kBytes };

// A column that the job uses: how the file calls it, and which values a decoder should make of it. csv files without a
// header call their columns "0", "1" and so on.
struct WantedColumn {
  std::string name;
  ValueKind kind = ValueKind::kFloat;
  std::vector<std::string> missing = {};  // floats: texts that mean that there is no value (column_text.h)
  std::vector<std::uint32_t> shape = {};  // floats: that of lists within lists (list_shape.h); less than two sizes: any
};

// Decoders take the values as the files have them. So floats may be NaN, which means that there is no value, and
// infinite, and bytes may have blanks around them: ColumnFit and ColumnEncoder say for all formats what becomes of
// that.
struct TableColumn {
  ValueKind kind = ValueKind::kFloat;
  // The values of all records, one record after the other. Only the vector of `kind` is used.
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> bytes;
  // The number of values of each record; 0 if the record lacks the column. Empty: each record has exactly one value.
  std::vector<std::uint32_t> lengths;
};

// Memory for texts. They stay where they are until clear().
class Texts {
 public:
  // Room for `bytes` characters, which aren't initialised.
  char* add(std::size_t bytes) {
    if (bytes > room_) {
      room_ = std::max(bytes, kPieceBytes);
      pieces_.push_back(std::make_unique_for_overwrite<char[]>(room_));
      at_ = pieces_.back().get();
    }
    char* const begin = at_;
    at_ += bytes;
    room_ -= bytes;
    return begin;
  }
  std::string_view keep(std::string_view text) {
    char* const begin = add(text.size());
    std::copy(text.begin(), text.end(), begin);
    return {begin, text.size()};
  }
  void clear() {
    pieces_.clear();
    room_ = 0;
  }

 private:
  static constexpr std::size_t kPieceBytes = 64 * 1024;

  std::vector<std::unique_ptr<char[]>> pieces_;
  char* at_ = nullptr;  // the last piece has `room_` free bytes here
  std::size_t room_ = 0;
};

inline std::size_t values_in(const TableColumn& column) {
  switch (column.kind) {
    case ValueKind::kFloat:
      return column.floats.size();
    case ValueKind::kInteger:
      return column.integers.size();
    case ValueKind::kBytes:
      return column.bytes.size();
  }
  return 0;
}

// Drops all values but the first `count`, of at least as many.
inline void drop_values_behind(TableColumn& column, std::size_t count) {
  if (column.kind == ValueKind::kFloat)
    column.floats.resize(count);
  else if (column.kind == ValueKind::kInteger)
    column.integers.resize(count);
  else
    column.bytes.resize(count);
}

struct Table {
  std::uint64_t records = 0;
  std::vector<TableColumn> columns;  // in the order of the wanted columns
  Texts texts;
  std::shared_ptr<const void> owner;  // keeps other memory into which bytes point; a library owns it, so it is shared
};

// Makes an empty table with the wanted columns, which keeps the memory that it has.
inline void start_table(const std::vector<WantedColumn>& wanted, Table& table) {
  table.records = 0;
  table.texts.clear();
  table.owner.reset();
  table.columns.resize(wanted.size());
  for (std::size_t c = 0; c < wanted.size(); ++c) {
    TableColumn& column = table.columns[c];
    column.kind = wanted[c].kind;
    column.floats.clear();
    column.integers.clear();
    column.bytes.clear();
    column.lengths.clear();
  }
}

// Empties the lengths of columns in which each record has exactly one value.
inline void drop_equal_lengths(Table& table) {
  for (TableColumn& column : table.columns) {
    const bool all_ones = std::all_of(column.lengths.begin(), column.lengths.end(), [](auto n) { return n == 1; });
    if (all_ones) column.lengths.clear();
  }
}

}  // namespace disttrain::input
