// Reads comma-separated text (RFC 4180). Each line is a record: its inputs are numbers, and its last column is the
// label. The first line is a header if all its columns are text, of which the last may be empty. NaN and infinity are
// numbers. So a header that names columns by numbers, as pandas does by default, is read as a record. The reader skips
// blank lines and drops blanks and line ends around fields, also within their quotes. A field in double quotes may
// contain commas, doubled quotes and line ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/file_reader.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxCsvRecordBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kMaxTextLabels = 64 * 1024;  // maximum number of different text labels in a file

// The labels of a file's records. Either all of them are numbers or all are text.
struct CsvLabels {
  // The label of each record, which fits into a float32. Empty if labels are text.
  std::vector<double> numbers;
  std::vector<std::uint32_t> codes;  // for each record, the index of its label in `names`; empty if labels are numbers
  std::vector<std::string> names;    // the different text labels, in the order in which they first appear
  // For each of `names`, the first line with that label. If labels are numbers: only the line of the first record.
  std::vector<std::uint64_t> lines;
};

struct CsvPart {
  std::string path;
  std::vector<std::string> header;  // empty if the file has none
  std::uint64_t header_line = 0;    // 0 if the file has none
  std::uint64_t columns = 0;        // number of input columns, that is all columns but the last
  std::uint64_t records = 0;        // at least 1
  std::vector<float> inputs;        // records * columns
  CsvLabels labels;
  std::uint64_t file_bytes = 0;
};

// Errors, kData, with file and line: an input isn't a finite number, a line has more or fewer fields than the first
// line, quotes are wrong, some labels are numbers and others text, a label is too large for a float32, or there are no
// records. With `takes_probabilities` (Source::takes_probabilities()) a label that is a number must be from 0 to 1.
Result<CsvPart> read_csv(ByteSource& file, bool takes_probabilities = false);

}  // namespace disttrain::input
