// Comma-separated text (RFC 4180): one record per line, numeric inputs, the label in the last column. A first line
// whose input columns are all text is a header. Blank lines are skipped, and blanks around fields are dropped. "Quoted"
// fields may hold commas, doubled quotes and line ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "workerd/input/file_reader.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxCsvRecordBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kMaxTextLabels = 64 * 1024;  // different ones

// The labels of some records: either all numbers or all text.
struct CsvLabels {
  std::vector<double> numbers;       // of each record, if they are numbers
  std::vector<std::uint32_t> codes;  // of each record, if they are text: index into `names`
  std::vector<std::string> names;    // in order of appearance
  std::vector<std::uint64_t> lines;  // first line of each of `names`; for numbers: the first record's line
};

struct CsvPart {
  std::string path;
  std::vector<std::string> header;  // empty if the file has none
  std::uint64_t columns = 0;        // inputs: all but the last
  std::uint64_t records = 0;        // at least 1
  std::vector<float> inputs;        // records * columns
  CsvLabels labels;
  std::uint64_t file_bytes = 0;
};

// Errors, kData, with "file:line: ...": an input that isn't a finite number, a line with another number of fields, bad
// quoting, labels of both kinds, no records.
Result<CsvPart> read_csv(FileReader& file);

}  // namespace disttrain::input
