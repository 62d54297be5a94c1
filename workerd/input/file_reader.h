// The content of one data file, plain or gzip. Gzip is decompressed as a stream, so that memory is allocated only for
// what the caller asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::input {

// A resource; one thread at a time. Every error names the file.
class FileReader {
 public:
  // Errors: kNoInput (missing, not a regular file, unreadable), kNoPermission, kData (named .gz, but isn't).
  static Result<std::unique_ptr<FileReader>> open(const std::string& path, std::function<bool()> is_cancelled = {});

  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Fills `out`; returns fewer bytes only at the end of the content. gzip's checksum is verified at the end: read until
  // a short count before you trust the data. Errors: kData (gzip that is corrupt, truncated or followed by something
  // else), kNoInput (the disk), kTemporary (cancelled).
  Result<std::size_t> read(std::span<std::byte> out);

  const std::string& path() const { return path_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  bool packed() const;

  // Upper bound of the content: a plain file's size, or the most that deflate can make of a compressed one.
  std::uint64_t most_content_bytes() const;

 private:
  class Inflater;

  FileReader(std::string path, Descriptor file, std::uint64_t file_bytes, std::function<bool()> is_cancelled);

  Status refill();
  Result<std::size_t> read_plain(std::span<std::byte> out);
  Result<std::size_t> read_packed(std::span<std::byte> out);

  const std::string path_;
  const Descriptor file_;
  const std::uint64_t file_bytes_;
  const std::function<bool()> is_cancelled_;
  std::unique_ptr<std::byte[]> buffer_;  // bytes read ahead from the file: [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool file_ended_ = false;
  std::uint64_t content_bytes_ = 0;     // bytes returned so far
  std::unique_ptr<Inflater> inflater_;  // none for a plain file
};

}  // namespace disttrain::input
