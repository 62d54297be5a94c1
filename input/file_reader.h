// Reads the content of one data file and decompresses it if it is in gzip or zstd format. It decompresses only as much
// as the caller asks for, so it needs little memory itself: at most 128 MiB for zstd, and less than 1 MiB otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "input/byte_source.h"
#include "input/decompressor.h"

namespace disttrain::input {

// At most one thread at a time may use a FileReader. Every error names the file.
class FileReader final : public ByteSource {
 public:
  // Errors: kNoInput (the file is missing, not a regular file or can't be read), kNoPermission, kData (its name ends in
  // .gz or .zst, but it isn't in that format; it is compressed by bzip2 or xz; it is a zip archive, unless
  // `may_be_zip`).
  static Result<std::unique_ptr<FileReader>> open(const std::string& path, std::function<bool()> is_cancelled = {},
                                                  std::uint64_t max_expansion = kMaxExpansion, bool may_be_zip = false);

  ~FileReader() override;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Fills `out` and returns the number of bytes. That number is less than the size of `out` only at the end of the
  // content. The checksum of a compressed file is verified at its end. So read to the end before you use the data.
  // Errors: kData (the compressed data is corrupt, is truncated, other data follows it, or it has more content than
  // most_content() allows), kNoInput (the disk can't be
  // read), kTemporary (cancelled).
  Result<std::size_t> read(std::span<std::byte> out) override;

  const std::string& path() const override { return path_; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  bool packed() const;

  // The size of the content is at most this. For a plain file it is the file's size; for a compressed file it is
  // the size that the format's highest compression ratio would give. read() may allow less.
  std::uint64_t most_content_bytes() const override;

 private:
  FileReader(std::string path, Descriptor file, std::uint64_t file_bytes, std::function<bool()> is_cancelled,
             std::uint64_t max_expansion);

  Status refill();
  Result<std::size_t> read_plain(std::span<std::byte> out);
  Result<std::size_t> read_packed(std::span<std::byte> out);

  const std::string path_;
  const Descriptor file_;
  const std::uint64_t file_bytes_;
  const std::function<bool()> is_cancelled_;
  const std::uint64_t max_expansion_;
  const std::size_t buffer_bytes_;
  std::unique_ptr<std::byte[]> buffer_;  // [begin_, end_) was read from the file but not yet returned
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool file_ended_ = false;
  std::uint64_t content_bytes_ = 0;  // bytes returned so far
  Compression compression_ = Compression::kNone;
  std::unique_ptr<Decompressor> decompressor_;  // none for a plain file
  bool may_have_more_ = false;  // the decompressor filled `out`, so it may have more without more bytes of the file
  bool has_ended_ = false;      // the compressed file is complete
};

}  // namespace disttrain::input
