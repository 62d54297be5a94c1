// What a connection over a ByteChannel begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/peer_limit.h"
#include "transport/traffic.h"
#include "transport/wire/frame_reader.h"

namespace disttrain::transport {

// A connection before it belongs to a loop, with the bytes that were already read.
struct StreamStart {
  wire::FrameReader reader;
  PeerSlot slot;
  std::string peer;
  std::uint64_t bytes_received = 0;
  wire::ChecksumKind checksum_kind = wire::ChecksumKind::kNone;
  std::shared_ptr<Traffic> traffic;
};

}  // namespace disttrain::transport
