// Reads the tables of one file, whatever its format is, from its begin to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "input/dataset.h"
#include "input/table.h"

namespace disttrain::input {

// Use it from one thread.
class TableReader {
 public:
  // For files with [data.columns]. `source` must outlive the reader. Errors: those of FileReader::open().
  static Result<std::unique_ptr<TableReader>> open(const Source& source, const std::string& path);

  virtual ~TableReader() = default;

  // Decodes the next records. Returns false after the last record. `table` is valid until the next call. Errors: those
  // of reading and of decoding the file.
  virtual Result<bool> next(Table& table) = 0;

  // Where a record of the last table is, for errors.
  virtual std::string place_of(std::uint64_t record) = 0;

  virtual std::uint64_t file_bytes() const = 0;
};

}  // namespace disttrain::input
