// What ColumnFit and ColumnEncoder share: how the values of a column are read and how errors name it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/columns.h"
#include "input/table.h"

namespace disttrain::input {

// Whether the files have values of this column. A cross has none.
bool has_values(const ColumnSection& column);
std::string key_of(const ColumnSection& column);
const std::string& name_in_files(const ColumnSection& column);
// The number of values of a numeric column in a record.
std::uint64_t value_count(const ColumnSection& column);

// Checks that each record of a table's column has `expected` values. A record of a numeric column or a weight may have
// none if data.columns.NAME.missing says what becomes of it, and so may a record of a category. Where several numbers
// are expected, a single NaN or number of `missing`, which missing_numbers() gave, counts as none.
Status check_lengths(const ColumnSection& section, const TableColumn& from, std::uint64_t expected,
                     const PlaceOf& place_of, const std::vector<float>& missing = {});
// The words of data.missing that are numbers, as float32 and ascending. To a column of numbers such a number is no
// value, however the file writes it: "-999", -999 and -999.0 are the same number.
std::vector<float> missing_numbers(const std::vector<std::string>& missing);

// Gives the numbers of a table's column, which check_lengths() has accepted, one after the other. The column and
// `missing`, which missing_numbers() gave, must outlive this object.
class NumbersOfRecords {
 public:
  NumbersOfRecords(const TableColumn& column, std::uint64_t expected, const std::vector<float>& missing)
      : lengths_(column.lengths), expected_(expected), missing_(missing), next_(column.floats.data()) {}

  // The next number of the record; NaN if the record has none, or a missing one. Call it `expected` times for each
  // record.
  float next(std::uint64_t record) {
    const std::uint64_t length = lengths_.empty() ? 1 : lengths_[record];
    if (length < expected_) {
      // The record has no number, or a single one that counts as none.
      lacking_ = lacking_ + 1 == expected_ ? 0 : lacking_ + 1;
      if (lacking_ == 0) next_ += length;
      return kNone;
    }
    const float number = *next_++;
    return std::binary_search(missing_.begin(), missing_.end(), number) ? kNone : number;
  }

 private:
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

  const std::vector<std::uint32_t>& lengths_;
  const std::uint64_t expected_;
  const std::vector<float>& missing_;
  const float* next_;
  std::uint64_t lacking_ = 0;  // how many numbers of the current record were asked for, which has none
};

// Gives the words of a table's column, which check_lengths() has accepted, one after the other. The column must outlive
// this object.
class WordsOfRecords {
 public:
  explicit WordsOfRecords(const TableColumn& column) : lengths_(column.lengths), next_(column.bytes.data()) {}

  // The text of the record; "" if it has none. Call it once for each record.
  std::string_view next(std::uint64_t record) {
    const bool lacks = !lengths_.empty() && lengths_[record] == 0;
    return lacks ? std::string_view() : *next_++;
  }

 private:
  const std::vector<std::uint32_t>& lengths_;
  const std::string_view* next_;
};

// Whether some record of a table's column has a value: a number or a word that isn't missing. Columns
// of tokens, bytes and images have one wherever the file has one. `missing` is data.missing.
bool has_a_value(const ColumnSection& section, const TableColumn& from, const std::vector<std::string>& missing);
// The number, or data.columns.NAME.missing in the place of NaN. Errors, kData: there is no such key, or the number is
// infinite.
Result<float> number_of(const ColumnSection& section, float number, std::uint64_t record, const PlaceOf& place_of);
// Checks the bytes of a word (wrong_bytes()).
Status check_word(const ColumnSection& section, std::string_view word, const std::string& place);
// No record of the training set has a value of this column.
tl::unexpected<Error> no_values(const ColumnSection& section);
// Checks the files of a training set: if none has a value in a column, its name is probably wrong. `has_values` of each
// file says for each of wanted_columns() whether the file has one.
template <typename File>
Status check_present(const std::vector<ColumnSection>& columns, const std::vector<File>& files) {
  std::size_t c = 0;
  for (const ColumnSection& section : columns) {
    if (!has_values(section)) continue;
    if (std::none_of(files.begin(), files.end(), [c](const File& file) { return file.has_values[c]; }))
      return no_values(section);
    ++c;
  }
  return {};
}
// The record's `text` gives no label. `missing` is data.missing.
tl::unexpected<Error> no_label(const ColumnSection& column, std::string_view text,
                               const std::vector<std::string>& missing, const std::string& place);

}  // namespace disttrain::input
