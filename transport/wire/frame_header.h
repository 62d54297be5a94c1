// The 64 bytes in front of each frame: their layout is in frame.h.
#pragma once

#include <array>
#include <span>

#include "common/messages/session.h"
#include "transport/wire/frame.h"

namespace disttrain::wire {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

// Whether this version knows the type.
bool known(FrameType type);

// Payload bytes that a frame of this type may have.
std::uint64_t max_payload_bytes(FrameType type);

// The header of a frame with these parts. Lengths and checksums are taken from them, `kind` says whether the payload
// gets one; the rest is `header`'s. CHECKs the sizes: what is sent is ours.
HeaderBytes encode_header(const FrameHeader& header, std::span<const std::byte> control,
                          std::span<const std::byte> payload, ChecksumKind kind);

// Whether the first 16 bytes are those of a hello of another version than ours; its number, or 0. They keep their
// meaning in every version, nothing behind them does.
inline constexpr std::size_t kLastingHeaderBytes = 16;
std::uint16_t foreign_hello_version(std::span<const std::byte, kLastingHeaderBytes> begin);

// Magic, version, sizes and the checksum's kind are good; the header's own checksum is not looked at yet. Nothing may
// be allocated before this. Errors: kData, or kConfig for another version.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// The header's checksum covers its first 60 bytes and the control part.
Status verify_header(std::span<const std::byte, kHeaderBytes> bytes, std::span<const std::byte> control);

}  // namespace disttrain::wire
