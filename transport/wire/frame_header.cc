#include "transport/wire/frame_header.h"

#include <cstring>

#include "common/check.h"
#include "transport/wire/checksum.h"
#include "transport/wire/little_endian.h"

namespace disttrain::wire {
namespace {

constexpr std::size_t kMagicAt = 0, kVersionAt = 4, kTypeAt = 6, kJobAt = 8, kControlBytesAt = 12, kGenerationAt = 16,
                      kSequenceAt = 24, kPayloadBytesAt = 32, kPayloadChecksumAt = 40, kChecksumKindAt = 44,
                      kHasPlaceAt = 45, kHeaderChecksumAt = 60;

tl::unexpected<Error> nonsense(const std::string& what) {
  return fail(ErrorCode::kData, "the peer sent something that isn't a disttrain frame: " + what);
}

}  // namespace

bool known(FrameType type) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kWelcome:
    case FrameType::kRefused:
    case FrameType::kControl:
    case FrameType::kBlob:
    case FrameType::kPush:
    case FrameType::kPull:
    case FrameType::kParameters:
    case FrameType::kAcknowledge:
    case FrameType::kMark:
    case FrameType::kMarkTaken:
    case FrameType::kStaged:
    case FrameType::kCommit:
    case FrameType::kPacerNews:
    case FrameType::kCut:
    case FrameType::kAlive:
      return true;
  }
  return false;
}

std::uint64_t max_payload_bytes(FrameType type) {
  return type == FrameType::kBlob ? kMaxBlobBytes : kMaxPayloadBytes;
}

HeaderBytes encode_header(const FrameHeader& header, std::span<const std::byte> control,
                          std::span<const std::byte> payload, ChecksumKind kind, std::span<const std::byte> place) {
  DISTTRAIN_CHECK_LE(control.size(), kMaxControlBytes);
  DISTTRAIN_CHECK_LE(payload.size(), max_payload_bytes(header.type));
  HeaderBytes bytes{};
  std::byte* to = bytes.data();
  put(to + kMagicAt, kMagic);
  put(to + kVersionAt, header.version);
  put(to + kTypeAt, static_cast<std::uint16_t>(header.type));
  put(to + kJobAt, header.job.value);
  put(to + kControlBytesAt, static_cast<std::uint32_t>(control.size() + place.size()));
  put(to + kGenerationAt, header.generation.value);
  put(to + kSequenceAt, header.sequence.value);
  put(to + kPayloadBytesAt, static_cast<std::uint64_t>(payload.size()));
  if (kind == ChecksumKind::kCrc32c && !payload.empty()) {
    put(to + kPayloadChecksumAt, crc32c(payload));
    to[kChecksumKindAt] = static_cast<std::byte>(kind);
  }
  if (!place.empty()) to[kHasPlaceAt] = std::byte{1};
  const std::uint32_t fixed = crc32c(std::span(bytes).first<kHeaderChecksumAt>());
  put(to + kHeaderChecksumAt, crc32c(control, crc32c(place, fixed)));
  return bytes;
}

PlaceBytes encode_place(const PayloadPlace& place) {
  const std::uint64_t words[] = {static_cast<std::uint64_t>(place.kind),
                                 place.block,
                                 place.offset,
                                 place.offered_block,
                                 place.offered_offset,
                                 place.offered_bytes};
  PlaceBytes bytes;
  for (std::size_t i = 0; i < std::size(words); ++i) put(bytes.data() + i * sizeof words[0], words[i]);
  return bytes;
}

Result<PayloadPlace> decode_place(std::span<const std::byte, kPlaceBytes> bytes) {
  std::uint64_t words[kPlaceBytes / sizeof(std::uint64_t)];
  for (std::size_t i = 0; i < std::size(words); ++i) words[i] = get<std::uint64_t>(bytes.data() + i * sizeof words[0]);
  if (words[0] > static_cast<std::uint64_t>(PayloadPlace::Kind::kPlaced))
    return nonsense("payloads of kind " + std::to_string(words[0]) + " are unknown");
  return PayloadPlace{static_cast<PayloadPlace::Kind>(words[0]), words[1], words[2], words[3], words[4], words[5]};
}

std::uint16_t foreign_hello_version(std::span<const std::byte, kLastingHeaderBytes> begin) {
  const auto version = get<std::uint16_t>(begin.data() + kVersionAt);
  const bool hello = get<std::uint32_t>(begin.data() + kMagicAt) == kMagic &&
                     get<std::uint16_t>(begin.data() + kTypeAt) == static_cast<std::uint16_t>(FrameType::kHello);
  return hello && version != kProtocolVersion ? version : 0;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  const std::byte* from = bytes.data();
  if (get<std::uint32_t>(from + kMagicAt) != kMagic) return nonsense("it doesn't begin with \"DTRN\"");
  FrameHeader header;
  header.version = get<std::uint16_t>(from + kVersionAt);
  if (header.version != kProtocolVersion)
    return fail(ErrorCode::kConfig, "the peer speaks protocol version " + std::to_string(header.version) +
                                        ", this program " + std::to_string(kProtocolVersion) +
                                        "; install the same version of disttrain on all hosts");
  header.type = static_cast<FrameType>(get<std::uint16_t>(from + kTypeAt));
  header.job = JobId(get<std::uint32_t>(from + kJobAt));
  header.control_bytes = get<std::uint32_t>(from + kControlBytesAt);
  header.generation = Generation(get<std::uint64_t>(from + kGenerationAt));
  header.sequence = Sequence(get<std::uint64_t>(from + kSequenceAt));
  header.payload_bytes = get<std::uint64_t>(from + kPayloadBytesAt);
  header.payload_checksum = get<std::uint32_t>(from + kPayloadChecksumAt);
  const auto kind = std::to_integer<unsigned>(from[kChecksumKindAt]);
  const auto has_place = std::to_integer<unsigned>(from[kHasPlaceAt]);
  header.has_place = has_place == 1;
  if (has_place > 1) return nonsense("its byte 45 is " + std::to_string(has_place) + "; expected 0 or 1");
  if (header.has_place && header.control_bytes < kPlaceBytes)
    return nonsense("a control part of " + std::to_string(header.control_bytes) + " bytes has no room for a place");
  if (header.control_bytes - (header.has_place ? kPlaceBytes : 0) > kMaxControlBytes)
    return nonsense("a control part of " + std::to_string(header.control_bytes) + " bytes; at most " +
                    std::to_string(kMaxControlBytes) + " are allowed");
  if (header.payload_bytes > max_payload_bytes(header.type))
    return nonsense("a payload of " + std::to_string(header.payload_bytes) + " bytes; at most " +
                    std::to_string(max_payload_bytes(header.type)) + " are allowed");
  if (kind > static_cast<unsigned>(ChecksumKind::kCrc32c))
    return nonsense("checksum kind " + std::to_string(kind) + " is unknown");
  header.checksum_kind = static_cast<ChecksumKind>(kind);
  return header;
}

Status verify_header(std::span<const std::byte, kHeaderBytes> bytes, std::span<const std::byte> control) {
  if (crc32c(control, crc32c(bytes.first<kHeaderChecksumAt>())) != get<std::uint32_t>(bytes.data() + kHeaderChecksumAt))
    return nonsense("the checksum of its header is wrong");
  return {};
}

}  // namespace disttrain::wire
