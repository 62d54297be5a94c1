#include "transport/rdma/message.h"

#include <string>

#include "transport/wire/little_endian.h"

namespace disttrain::transport {

using wire::get;
using wire::put;

namespace {

constexpr std::uint64_t kMagic = 0x31414d4452544944;  // "DITRDMA1" in memory
constexpr std::uint32_t kMostSlots = 4096;
constexpr std::uint32_t kLeastSlotBytes = 512;
constexpr std::uint32_t kMostSlotBytes = 1024 * 1024;

tl::unexpected<Error> malformed(const std::string& what) {
  return fail(ErrorCode::kData, "the peer sent a message that isn't one of disttrain: " + what);
}

}  // namespace

GreetingBytes encode(const RdmaGreeting& greeting) {
  GreetingBytes bytes;
  put(bytes.data(), kMagic);
  put(bytes.data() + 8, greeting.slots);
  put(bytes.data() + 12, greeting.slot_bytes);
  return bytes;
}

Result<RdmaGreeting> decode_greeting(std::span<const std::byte> bytes) {
  // Devices may append zeros.
  if (bytes.size() < kGreetingBytes || get<std::uint64_t>(bytes.data()) != kMagic)
    return fail(ErrorCode::kConfig, "the process there isn't disttrain, or a version with another RDMA protocol");
  const RdmaGreeting greeting{get<std::uint32_t>(bytes.data() + 8), get<std::uint32_t>(bytes.data() + 12)};
  if (greeting.slots < 2 || greeting.slots > kMostSlots || greeting.slot_bytes < kLeastSlotBytes ||
      greeting.slot_bytes > kMostSlotBytes)
    return malformed("it has " + std::to_string(greeting.slots) + " receive slots of " +
                     std::to_string(greeting.slot_bytes) + " bytes");
  return greeting;
}

void encode(const RdmaMessage& message, std::span<std::byte, kMessageBytes> to) {
  put(to.data(), static_cast<std::uint16_t>(message.kind));
  put(to.data() + 2, message.credits);
  put(to.data() + 4, message.bytes);
}

Result<RdmaMessage> decode_message(std::span<const std::byte> arrived) {
  if (arrived.size() < kMessageBytes) return malformed("it has " + std::to_string(arrived.size()) + " bytes");
  const auto kind = get<std::uint16_t>(arrived.data());
  if (kind < static_cast<std::uint16_t>(RdmaMessage::Kind::kBytes) ||
      kind > static_cast<std::uint16_t>(RdmaMessage::Kind::kCredits))
    return malformed("its kind is " + std::to_string(kind));
  const RdmaMessage message{static_cast<RdmaMessage::Kind>(kind), get<std::uint16_t>(arrived.data() + 2),
                            get<std::uint32_t>(arrived.data() + 4)};
  const bool has_body = message.kind != RdmaMessage::Kind::kCredits;
  if (message.bytes != arrived.size() - kMessageBytes || has_body != (message.bytes > 0))
    return malformed("it says that its body has " + std::to_string(message.bytes) + " bytes, but " +
                     std::to_string(arrived.size() - kMessageBytes) + " arrived");
  if (!has_body && message.credits == 0) return malformed("it returns no credits and has no body");
  return message;
}

std::array<std::byte, kBlockBytes> encode(const RdmaBlock& block) {
  std::array<std::byte, kBlockBytes> bytes;
  put(bytes.data(), block.block);
  put(bytes.data() + 8, static_cast<std::uint32_t>(block.use));
  put(bytes.data() + 12, block.key);
  put(bytes.data() + 16, block.address);
  put(bytes.data() + 24, block.bytes);
  return bytes;
}

Result<RdmaBlock> decode_block(std::span<const std::byte> body) {
  if (body.size() != kBlockBytes)
    return malformed("a block's description has " + std::to_string(body.size()) + " bytes");
  const auto use = get<std::uint32_t>(body.data() + 8);
  if (use != static_cast<std::uint32_t>(RdmaBlock::Use::kRead) &&
      use != static_cast<std::uint32_t>(RdmaBlock::Use::kWrite))
    return malformed("a block has the use " + std::to_string(use));
  const RdmaBlock block{get<std::uint64_t>(body.data()), static_cast<RdmaBlock::Use>(use),
                        get<std::uint32_t>(body.data() + 12), get<std::uint64_t>(body.data() + 16),
                        get<std::uint64_t>(body.data() + 24)};
  if (block.bytes == 0 || block.bytes > ~std::uint64_t{0} - block.address)
    return malformed("a block has " + std::to_string(block.bytes) + " bytes from the address " +
                     std::to_string(block.address) + " on");
  return block;
}

}  // namespace disttrain::transport
