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

// Most payload bytes that a frame of this type may have.
std::uint64_t max_payload_bytes(FrameType type);

// The header of a frame with these parts. It computes the lengths and checksums from them; `kind` says whether the
// payload gets a checksum; the rest is copied from `header`. CHECKs the sizes, because only our own frames are encoded.
HeaderBytes encode_header(const FrameHeader& header, std::span<const std::byte> control,
                          std::span<const std::byte> payload, ChecksumKind kind);

// If the first 16 bytes are those of a hello of another version than ours, its version, else 0. These bytes keep their
// meaning in every version; later bytes don't.
inline constexpr std::size_t kLastingHeaderBytes = 16;
std::uint16_t foreign_hello_version(std::span<const std::byte, kLastingHeaderBytes> begin);

// Checks magic, version, sizes and the checksum's kind, but not the header's own checksum. Allocate nothing for a frame
// before this. Errors: kData, or kConfig for another version.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// The header's checksum covers its first 60 bytes and the control part.
Status verify_header(std::span<const std::byte, kHeaderBytes> bytes, std::span<const std::byte> control);

}  // namespace disttrain::wire
