// A block of decoded records, column by column. The decoders of the formats (csv, tfrecord, libsvm, jsonl, ...) make
// tables. [data.columns] says which columns of a table the model gets, and what becomes of their values.
//
// A table holds only the columns that the job uses, so a decoder gets their names and the type that it should make.
// Text isn't copied: its values point into the block of bytes from which the table was decoded.
#pragma once

#include <cstdint>
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
};

struct TableColumn {
  ValueKind kind = ValueKind::kFloat;
  // The values of all records, one record after the other. Only the vector of `kind` is used.
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> bytes;
  // The number of values of each record; 0 if the record lacks the column. Empty: each record has exactly one value.
  std::vector<std::uint32_t> lengths;
};

struct Table {
  std::uint64_t records = 0;
  std::vector<TableColumn> columns;  // in the order of the wanted columns
};

}  // namespace disttrain::input
