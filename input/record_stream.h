// Reads a file from its begin to its end and finds the records in it, one block after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/result.h"
#include "input/file_reader.h"
#include "input/record_format.h"

namespace disttrain::input {

// Use it from one thread.
class RecordStream {
 public:
  // Both arguments must outlive this object.
  RecordStream(FileReader& file, const RecordFormat& format) : file_(file), format_(format) {}

  // Finds the next records. Returns false after the last record. block() and records() are valid until the next call.
  // Errors: those of FileReader::read() and RecordFormat::find().
  Result<bool> next();

  // The block with the records that next() has found, and their places in it.
  const RecordBlock& block() const { return block_; }
  const std::vector<RecordPlace>& records() const { return records_; }

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

  Status refill();

  FileReader& file_;
  const RecordFormat& format_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // [begin_, end_) of the buffer has no record yet
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;  // of begin_ in the file's content
  std::uint64_t found_ = 0;   // records before the block
  bool has_ended_ = false;    // the file has no bytes after end_
  RecordBlock block_;
  std::vector<RecordPlace> records_;
};

}  // namespace disttrain::input
