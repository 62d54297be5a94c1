// Turns tables into the arrays of a data set, as [data.columns] says: numbers into "inputs", categories into
// "categories", and the label into "labels". It doesn't matter which format the tables come from.
//
// First a ColumnValues takes the tables of one file. Words become codes: the index of the word among the different
// words of the file. When all files are read, fit_columns() computes from the training set what [data.columns] leaves
// open: vocabularies, means and deviations. They depend only on the files, so each worker computes the same.
// encode_columns() then makes the arrays. A test set is encoded with what the training set gave.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "workerd/input/dataset.h"
#include "workerd/input/memory_dataset.h"
#include "workerd/input/table.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxWords = 1 << 24;  // different words of a column in a file

// The columns that a decoder must read, for each of `columns` that needs one.
std::vector<WantedColumn> wanted_columns(const std::vector<ColumnSection>& columns);

// Different words, numbered in the order in which they appear.
class Words {
 public:
  Words() = default;
  Words(Words&&) = default;
  Words& operator=(Words&&) = default;
  Words(const Words&) = delete;  // codes_ would point into the other object
  Words& operator=(const Words&) = delete;

  // The number of the word. If it is new, it gets the next number.
  std::uint32_t code_of(std::string_view word);
  const std::deque<std::string>& all() const { return words_; }

 private:
  std::deque<std::string> words_;  // a deque, because the keys of codes_ point into its elements
  std::unordered_map<std::string_view, std::uint32_t> codes_;
};

// The values of one file.
class FileColumns {
 public:
  struct Column {
    std::vector<float> numbers;        // of a numeric column
    std::vector<std::uint32_t> codes;  // of a column of words: for each record, the code of its word
    Words words;
    std::vector<std::string> places;  // of each word: where it first appears, as "FILE:LINE"
  };
  using PlaceOf = std::function<std::string(std::uint64_t record)>;

  explicit FileColumns(const std::vector<ColumnSection>& columns);

  // Takes the records of a table, whose columns are wanted_columns(). `place_of` says where a record of the table is,
  // for errors: "FILE:LINE". Errors, kData: a value is missing or there are several, or a column has too many words.
  Status take(const Table& table, const PlaceOf& place_of);

  std::uint64_t records() const { return records_; }
  // In the order of wanted_columns().
  const std::vector<Column>& columns() const { return columns_; }

 private:
  std::vector<const ColumnSection*> sections_;
  std::vector<Column> columns_;
  std::uint64_t records_ = 0;
};

// What a column takes from the training set, or from job.toml.
struct FittedColumn {
  std::vector<std::string> vocabulary;  // of a category or a label; empty for labels that are numbers
  double mean = 0.0;
  double deviation = 1.0;
};
// For each of [data.columns].
struct FittedColumns {
  std::vector<FittedColumn> columns;
};

// `files` are in the order of their names; only their records [begin, end) count. Errors, kConfig: a vocabulary is too
// large. kData: a label is missing.
Result<FittedColumns> fit_columns(const std::vector<ColumnSection>& columns, const std::vector<FileColumns>& files,
                                  std::uint64_t begin, std::uint64_t end);

// For each category column, the number of its values.
std::vector<std::uint32_t> category_sizes(const std::vector<ColumnSection>& columns, const FittedColumns& fitted);

// Makes the arrays of all records of the files. Errors, kData: the label of a record in [begin, end) isn't in the
// vocabulary. Records outside of this range may have any label; they get the first one.
Result<Contents> encode_columns(const std::vector<ColumnSection>& columns, const FittedColumns& fitted,
                                const std::vector<FileColumns>& files, std::uint64_t begin, std::uint64_t end);

}  // namespace disttrain::input
