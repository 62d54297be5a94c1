// OutputsFile writes a matrix of float32 row by row, as an npy file, as CSV or as Parquet.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "common/result.h"
#include "input/parquet/parquet_writer.h"

namespace disttrain::workerd {

// Writes under a temporary name beside `path`. The destructor removes this file unless finish() has renamed it.
class OutputsFile {
 public:
  // `rows` is the number of rows that add() will bring in all. The name's end chooses the format: ".npy" (float32,
  // version 1.0 of numpy's format), ".csv" (a head line "output_0,output_1,..." and as many digits as the values need)
  // or
  // ".parquet" (columns of float32 with the same names). Fails with kUsage for any other name, and for a folder.
  static Result<OutputsFile> open(const std::string& path, std::uint64_t rows);
  ~OutputsFile();
  OutputsFile(OutputsFile&& other) noexcept;
  OutputsFile& operator=(OutputsFile&&) = delete;

  // `values` has whole rows, one after the other, of `columns` >= 1 values each. All calls must give the same number of
  // columns, else kData. Fails with kFailed if the file can't be written.
  Status add(std::span<const float> values, std::uint64_t columns);
  // After the last row.
  Status finish();

  std::uint64_t columns() const { return columns_; }

 private:
  OutputsFile(std::string path, std::string temporary, std::uint64_t rows);
  Status write_head();
  Status check();

  std::string path_;
  std::string temporary_;
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;  // 0: no row has come yet
  std::ofstream file_;
  std::unique_ptr<input::ParquetWriter> parquet_;  // writes the file instead, from the first row on
};

}  // namespace disttrain::workerd
