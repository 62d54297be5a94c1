// The checksum CRC-32C (Castagnoli), computed with the CPU's instructions for it. For example, "123456789" gives
// 0xe3069283 (RFC 3720, appendix B.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttrain::wire {

// The checksum of `bytes`. To continue a checksum, pass it as `previous`: crc32c(b, crc32c(a)) is the checksum of a
// followed by b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace disttrain::wire
