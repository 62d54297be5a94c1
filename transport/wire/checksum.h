// CRC-32C (Castagnoli; RFC 3720 appendix B.4: "123456789" gives 0xe3069283), with the CPU's instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttrain::wire {

// crc32c(b, crc32c(a)) is the checksum of a followed by b.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace disttrain::wire
