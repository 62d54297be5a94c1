// Writes a matrix of float32 as a Parquet file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::input {

// Use it from one thread.
class ParquetWriter {
 public:
  // Creates the file, or empties it. It has a column without nulls for each of the names, of which there is at least
  // one. Errors: kFailed.
  static Result<std::unique_ptr<ParquetWriter>> create(const std::string& path,
                                                       const std::vector<std::string>& columns);

  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  // Adds whole rows, one after the other. A row group is written when about 16 MiB of values are there. Errors:
  // kFailed.
  Status add(std::span<const float> rows);
  // Writes the last row group and the footer. Without it the file isn't complete. Errors: kFailed.
  Status finish();

 private:
  class Writer;

  explicit ParquetWriter(std::unique_ptr<Writer> writer);

  const std::unique_ptr<Writer> writer_;
};

}  // namespace disttrain::input
