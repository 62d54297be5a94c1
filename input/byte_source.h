// Bytes that are read from begin to end: a file, or a member of an archive. Decoders that need no positions take one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/result.h"

namespace disttrain::input {

// At most one thread at a time may use a source.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `out` and returns the number of bytes. That number is less than the size of `out` only at the end. Errors
  // name the source.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;

  // For error texts.
  virtual const std::string& path() const = 0;
  // Of the file on the disk, which may be compressed.
  virtual std::uint64_t file_bytes() const = 0;
  // The source has at most this many bytes. So a decoder can refuse a header that promises more.
  virtual std::uint64_t most_content_bytes() const = 0;
};

}  // namespace disttrain::input
