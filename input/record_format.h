// What reading by records must know of a format: where the records of a file are, and how to decode them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/dataset.h"
#include "input/record_block.h"
#include "input/table.h"

namespace disttrain::input {

// Any thread may use it, except for prepare().
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;

  // Learns from the first file of the data set what is common to all files, such as the header of csv files. Called
  // once, before the other functions. Errors: those of FileReader, and kData: as of find().
  virtual Status prepare(const std::string& first_path) = 0;

  // Replaces `records` by the places of the whole records in the block, and returns how many bytes of the block they
  // cover. A block of at least `most_record_bytes()` bytes has a whole record. Errors: kData.
  virtual Result<std::size_t> find(const RecordBlock& block, std::vector<RecordPlace>& records) const = 0;

  // Replaces the content of `table` by these records of the block, with the columns that the format was made for. They
  // follow each other in the file; records[0] is number block.first_record. The block has `tail_bytes()` more bytes
  // after each record's data. Errors: kData.
  virtual Status decode(const RecordBlock& block, std::span<const RecordPlace> records, Table& table) const = 0;

  // Whether each file is one record, whatever its content is.
  virtual bool is_file_record() const { return false; }
  // Whether a record begins where a line begins, and ends where one ends. Then find() finds the same records in a block
  // that begins with one of them and ends with the line of another.
  virtual bool has_lines() const { return false; }
  virtual std::size_t most_record_bytes() const = 0;
  virtual std::size_t tail_bytes() const = 0;
};

struct FormatOptions {
  DataFormat format = DataFormat::kCsv;         // not idx, npy or text
  std::vector<ColumnSection> columns;           // of [data.columns]
  std::vector<std::string> missing;             // words that mean that a value is missing (column_text.h)
  bool may_lack_labels = false;                 // Source::may_lack_labels
  std::uint64_t max_expansion = kMaxExpansion;  // of the compressed file that prepare() reads
  IsCancelled is_cancelled;                     // while prepare() reads it
};

FormatOptions format_options(const Source& source);

// Whether csv files with these columns begin with a header line. A column that isn't wanted now, because a prediction
// needs no label or a first pass looks for other columns, still says what the files have.
bool has_header_line(const std::vector<ColumnSection>& columns);

// The format decodes the columns wanted_columns().
std::unique_ptr<RecordFormat> make_record_format(const FormatOptions& options);

}  // namespace disttrain::input
