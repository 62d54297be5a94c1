// A data file from which Arrow reads.
#pragma once

#include <arrow/io/interfaces.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "input/parquet/file_stamp.h"

namespace disttrain::input {

// Several threads may use it, as arrow::io::RandomAccessFile says. Arrow's own class for files doesn't say how long its
// reads take. A file that is mapped into memory would end the process if somebody truncates it.
class InputFile final : public arrow::io::RandomAccessFile {
 public:
  // Errors: kNoInput, kNoPermission.
  static Result<std::shared_ptr<InputFile>> open(const std::string& path, ReadCounts counts);

  // Returns the stamp that the file has now.
  FileStamp stamp() const;

  // While an object of this class exists, the bytes that are read aren't counted, because they are read again for the
  // data set. No other thread may read the file meanwhile.
  class WithoutBytes {
   public:
    explicit WithoutBytes(InputFile& file) : file_(file) { file_.counts_bytes_ = false; }
    ~WithoutBytes() { file_.counts_bytes_ = true; }
    WithoutBytes(const WithoutBytes&) = delete;
    WithoutBytes& operator=(const WithoutBytes&) = delete;

   private:
    InputFile& file_;
  };

  arrow::Status Close() override;
  bool closed() const override;
  arrow::Result<std::int64_t> Tell() const override;
  arrow::Status Seek(std::int64_t position) override;
  arrow::Result<std::int64_t> GetSize() override;
  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override;
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t bytes) override;

 private:
  InputFile(Descriptor file, ReadCounts counts) : file_(std::move(file)), counts_(counts) {}

  Descriptor file_;
  const ReadCounts counts_;
  bool counts_bytes_ = true;
  std::int64_t position_ = 0;
};

}  // namespace disttrain::input
