// Decompresses the content of a file piece by piece. The format follows from the file's first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"

namespace disttrain::input {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd };

const char* to_string(Compression compression);  // "no", "gzip", "zstd"

// By the first bytes of a file, of which there should be at least 4.
Compression compression_of(std::span<const std::byte> begin);

// The name of a common compression that disttrain doesn't read: "bzip2", "xz" or "zip". Null if the file begins like
// none of them. There should be at least 10 bytes of it.
const char* unread_compression(std::span<const std::byte> begin);

// By the end of its name: .gz or .zst.
Compression compression_by_name(const std::string& path);

// Content of at most this many bytes can come from one compressed byte.
std::uint64_t largest_ratio(Compression compression);

// A small file that decompresses to very much content costs the time and the memory of a large one. So the content of a
// compressed file has a bound: kFreeContentBytes, or `max_expansion` (the key data.max_expansion) times the bytes of
// the file if that is more.
inline constexpr std::uint64_t kMaxExpansion = 100;
inline constexpr std::uint64_t kFreeContentBytes = std::uint64_t{64} << 20;
std::uint64_t most_content(std::uint64_t file_bytes, std::uint64_t max_expansion);
// "... has more than 64 MiB of content ..."
Error expansion_error(const std::string& path, std::uint64_t file_bytes, std::uint64_t max_expansion);

inline constexpr int kMaxZstdWindowBits = 27;  // 128 MiB

// At most one thread at a time may use a decompressor.
class Decompressor {
 public:
  // `compression` isn't kNone. A zstd frame that needs a window of more than 2^max_zstd_window_bits bytes is refused.
  // Returns null if there isn't enough memory.
  static std::unique_ptr<Decompressor> make(Compression compression, int max_zstd_window_bits = kMaxZstdWindowBits);

  virtual ~Decompressor() = default;

  struct Step {
    std::size_t taken = 0;               // bytes of `in`
    std::size_t given = 0;               // bytes of `out`
    std::optional<std::string> problem;  // why the data is corrupt
    bool no_memory = false;
  };
  // Decompresses some bytes. If `out` is full, more may come without more bytes of `in`. A file may have several gzip
  // members or zstd frames, and zeros behind a gzip member.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;

  // Whether the file may end here.
  virtual bool is_between_parts() const = 0;
};

}  // namespace disttrain::input
