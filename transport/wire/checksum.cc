#include "transport/wire/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace disttrain::wire {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // bytes per call of the library, which counts in int
  std::uint32_t state = ~previous;                      // the library doesn't do the two inversions of CRC-32C itself
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kPiece);
    // The cast is safe, because the library only reads the bytes.
    auto* begin = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(begin, static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

}  // namespace disttrain::wire
