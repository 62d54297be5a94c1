// Encodes and checks the header of a frame. frame.h describes its 64 bytes.
#pragma once

#include <array>
#include <span>

#include "common/messages/session.h"
#include "transport/wire/frame.h"

namespace disttrain::wire {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;
using PlaceBytes = std::array<std::byte, kPlaceBytes>;

// Returns true if this version of the program knows the type.
bool known(FrameType type);

// The largest number of payload bytes that a frame of this type may have.
std::uint64_t max_payload_bytes(FrameType type);

// Encodes the header of a frame with these parts. Computes the lengths and checksums, and copies the other fields from
// `header`. `kind` says whether the payload gets a checksum. `place` has a PayloadPlace, which the caller sends before
// the control part, or is empty. A part that is too long fails a DISTTRAIN_CHECK, because we encode only our own
// frames.
HeaderBytes encode_header(const FrameHeader& header, std::span<const std::byte> control,
                          std::span<const std::byte> payload, ChecksumKind kind, std::span<const std::byte> place = {});

PlaceBytes encode_place(const PayloadPlace& place);

// If a frame that begins with these 16 bytes is a hello of another version than ours, returns that version; otherwise
// 0. These bytes have the same meaning in every version; later bytes may not.
inline constexpr std::size_t kLastingHeaderBytes = 16;
std::uint16_t foreign_hello_version(std::span<const std::byte, kLastingHeaderBytes> begin);

// Decodes a header. Checks the magic number, the version, the sizes and the kind of checksum, but not the header's own
// checksum. Don't allocate memory for a frame before these checks. Errors: kConfig for another version, kData for
// anything else.
Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes);

// kData: the kind is unknown.
Result<PayloadPlace> decode_place(std::span<const std::byte, kPlaceBytes> bytes);

// Checks the header's checksum, which covers the header's first 60 bytes and the control part.
Status verify_header(std::span<const std::byte, kHeaderBytes> bytes, std::span<const std::byte> control);

}  // namespace disttrain::wire
