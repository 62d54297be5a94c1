// Messages of an RDMA connection. They carry the bytes of frames, and the ends tell each other of blocks of memory and
// of free slots. Each SEND begins with a message header of 8 bytes. All integers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/result.h"

namespace disttrain::transport {

// The data of the connection request and of its answer (rdma_cm calls it private data).
struct RdmaGreeting {
  std::uint32_t slots = 0;  // receive slots for messages with bytes and blocks: the credits that the peer begins with
  std::uint32_t slot_bytes = 0;  // the longest message that fits
};
inline constexpr std::size_t kGreetingBytes = 16;
using GreetingBytes = std::array<std::byte, kGreetingBytes>;
GreetingBytes encode(const RdmaGreeting& greeting);
// kConfig: not disttrain, or another version of this protocol. kData: nonsense.
Result<RdmaGreeting> decode_greeting(std::span<const std::byte> bytes);

struct RdmaMessage {
  enum class Kind : std::uint16_t {
    kBytes = 1,    // the body is a part of the stream of frames
    kBlock = 2,    // the body is an RdmaBlock
    kCredits = 3,  // no body
  };
  Kind kind = Kind::kBytes;
  std::uint16_t credits = 0;  // receive slots that the sender has emptied
  std::uint32_t bytes = 0;    // of the body
};
inline constexpr std::size_t kMessageBytes = 8;
void encode(const RdmaMessage& message, std::span<std::byte, kMessageBytes> to);
// `arrived` is the whole message. kData: it is malformed.
Result<RdmaMessage> decode_message(std::span<const std::byte> arrived);

// A block of the sender's memory that the receiver may use from now on.
struct RdmaBlock {
  enum class Use : std::uint32_t { kRead = 1, kWrite = 2 };
  std::uint64_t block = 0;  // Arena::Place::block
  Use use = Use::kRead;
  std::uint32_t key = 0;  // rkey
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
inline constexpr std::size_t kBlockBytes = 32;
std::array<std::byte, kBlockBytes> encode(const RdmaBlock& block);
// kData: malformed, or the block doesn't fit into an address space.
Result<RdmaBlock> decode_block(std::span<const std::byte> body);

}  // namespace disttrain::transport
