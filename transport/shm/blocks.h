// Blocks of memory that the two ends of a shm connection share beside the rings: those of this process that the peer
// may map, and those of the peer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "common/os/arena.h"
#include "common/os/descriptor.h"
#include "common/result.h"
#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

// A worker shares up to 2 blocks of parameters and 3 of gradients.
inline constexpr std::size_t kMaxPeerBlocks = 16;

// The blocks of this process that the peer knows.
class SharedBlocks {
 public:
  // Sends the block's file to the peer, unless that was done before. Returns false if it can't be sent now.
  bool share(int socket, const Arena::Place& place);

 private:
  std::set<std::uint64_t> sent_;
};

// The blocks of the peer. They stay mapped until the connection closes, and as long as somebody uses them.
class PeerBlocks {
 public:
  // kData: not a sealed file in memory, or too many blocks.
  Status add(std::uint64_t block, Descriptor file);
  bool has(std::uint64_t block) const { return blocks_.contains(block); }
  // These bytes of a block, for reading or also for writing. Maps the block on the first call. kData: there is no such
  // block, or it is shorter. kUnavailable: it can't be mapped.
  Result<PeerMemory> bytes(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes, bool writable);

 private:
  struct Block {
    Descriptor file;  // until it is mapped
    std::uint64_t bytes = 0;
    std::shared_ptr<std::byte> mapping;  // null until it is needed
    bool is_writable = false;
  };
  std::map<std::uint64_t, Block> blocks_;
};

}  // namespace disttrain::transport
