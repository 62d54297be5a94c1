// Decodes a csv file from its begin to its end, one block of bytes after the other. See csv_rows.h for the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/csv_rows.h"
#include "input/file_reader.h"
#include "input/table.h"

namespace disttrain::input {

class CsvTables {
 public:
  // The file and `wanted` must outlive this object.
  CsvTables(ByteSource& file, const std::vector<WantedColumn>& wanted, bool has_header);

  // Decodes the next records. Returns false after the last record. `table` is valid until the next call. Errors: those
  // of read_csv_header(), find_csv_rows() and decode_csv_rows(), and of reading the file.
  Result<bool> next(Table& table);

  // The line of the file, from 1, on which a record of the last table begins. It is fast if the records are asked for
  // in order.
  std::uint64_t line_of(std::uint64_t record);

 private:
  Status refill();
  RecordBlock block() const;

  ByteSource& file_;
  const std::vector<WantedColumn>& wanted_;
  const bool has_header_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // [begin_, end_) of the buffer isn't decoded yet
  std::size_t end_ = 0;
  bool has_ended_ = false;     // the file has no bytes after end_
  std::uint64_t offset_ = 0;   // of begin_ in the file
  std::uint64_t line_ = 1;     // of begin_
  std::uint64_t decoded_ = 0;  // records before begin_
  std::optional<CsvHeader> header_;
  RecordBlock last_;  // the block of the last table
  std::vector<RecordPlace> places_;
  std::size_t counted_to_ = 0;  // line_of() has counted the lines of last_ up to this byte
  std::uint64_t counted_line_ = 0;
};

}  // namespace disttrain::input
