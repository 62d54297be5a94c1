// A frame has three parts: a header of 64 bytes, a control part (a Cap'n Proto message of at most 64 KiB), and a
// payload. The payload is at most 1 MiB of raw tensor bytes; in a blob frame it is a Cap'n Proto message of at most 64
// MiB.
//
// The header is little-endian. The number before each field is the offset of the field:
//    0  u32 magic "DTRN"        4  u16 version           6  u16 type
//    8  u32 job                12  u32 control bytes
//   16  u64 generation         24  u64 sequence
//   32  u64 payload bytes      40  u32 payload checksum  44  u8 checksum kind
//   45  u8  1 if a PayloadPlace of 48 bytes precedes the control part; 46..59 zero
//   60  u32 crc32c of bytes 0..59 and the control part
// In every version of the protocol, the first 16 bytes of a hello have this meaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "common/result.h"

namespace disttrain::wire {

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::uint32_t kMagic = 0x4e525444;  // "DTRN" in memory
inline constexpr std::uint32_t kMaxControlBytes = 64 * 1024;
inline constexpr std::uint64_t kMaxPayloadBytes = 1024 * 1024;
inline constexpr std::uint64_t kMaxBlobBytes = 64 * 1024 * 1024;

// The types of frames. Numbers are never changed or reused. protocol.capnp says which message a type carries.
enum class FrameType : std::uint16_t {
  kHello = 1,
  kWelcome = 2,
  kRefused = 3,
  // Control connections. A ControlMessage is in the control part of kControl, or in the payload of kBlob.
  kControl = 16,
  kBlob = 17,
  // Channels.
  kPush = 32,
  kPull = 33,
  kParameters = 34,
  kAcknowledge = 35,
  kMark = 36,
  kMarkTaken = 37,
  // Shard peers.
  kStaged = 48,
  kCommit = 49,
  kPacerNews = 50,
  kCut = 51,
  // Channels and shard peers. Sent if nothing else was sent for a while, to show that the sender lives and the
  // connection works.
  kAlive = 64,
};

enum class ChecksumKind : std::uint8_t { kNone = 0, kCrc32c = 1 };

// Where the payload of a frame lies, on a connection whose ends share memory (transport/shm). Blocks are numbered by
// the process that has made them.
//
// On the wire these are six little-endian u64 in this order. They count as a part of the control part.
struct PayloadPlace {
  enum class Kind : std::uint64_t {
    kInFrame = 0,  // the payload follows the control part
    kLent = 1,     // in the block `block` of the sender, from the byte `offset` on
    kPlaced = 2,   // in the memory that the receiver has offered, from the byte `offset` on
  };
  Kind kind = Kind::kInFrame;
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
  // The sender offers these bytes of its block: the receiver may write the payloads of its answers there. 0 bytes: the
  // sender offers nothing new.
  std::uint64_t offered_block = 0;
  std::uint64_t offered_offset = 0;
  std::uint64_t offered_bytes = 0;
};
inline constexpr std::size_t kPlaceBytes = 48;

struct FrameHeader {
  std::uint16_t version = 1;
  FrameType type = FrameType::kControl;  // in a received frame it may be a number that this version doesn't know
  JobId job;
  Generation generation;
  Sequence sequence;
  std::uint32_t control_bytes = 0;  // with the PayloadPlace
  std::uint64_t payload_bytes = 0;
  ChecksumKind checksum_kind = ChecksumKind::kNone;
  std::uint32_t payload_checksum = 0;
  bool has_place = false;  // a PayloadPlace precedes the control part
};

}  // namespace disttrain::wire
