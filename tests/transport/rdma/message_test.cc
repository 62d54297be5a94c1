// The messages of an RDMA connection, and peers that send nonsense.
#include <gtest/gtest.h>

#include "transport/connection.h"
#include "transport/rdma/message.h"

namespace disttrain::transport {
namespace {

TEST(RdmaMessages, AGreetingComesBackAlsoWithZerosBehindIt) {
  const GreetingBytes bytes = encode(RdmaGreeting{.slots = 32, .slot_bytes = 8192});
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.resize(196);
  const auto greeting = decode_greeting(padded);
  ASSERT_TRUE(greeting);
  EXPECT_EQ(greeting->slots, 32u);
  EXPECT_EQ(greeting->slot_bytes, 8192u);
}

TEST(RdmaMessages, AGreetingOfSomethingElseIsRefused) {
  const auto good = encode(RdmaGreeting{.slots = 32, .slot_bytes = 8192});
  EXPECT_EQ(decode_greeting({}).error().code, ErrorCode::kConfig);
  EXPECT_EQ(decode_greeting(Bytes(good).first(15)).error().code, ErrorCode::kConfig);
  auto other = good;
  other[7] = std::byte{'2'};
  EXPECT_EQ(decode_greeting(other).error().code, ErrorCode::kConfig);
  for (const RdmaGreeting bad :
       {RdmaGreeting{1, 8192}, RdmaGreeting{~0u, 8192}, RdmaGreeting{32, 8}, RdmaGreeting{32, ~0u}})
    EXPECT_EQ(decode_greeting(encode(bad)).error().code, ErrorCode::kData) << bad.slots << " of " << bad.slot_bytes;
}

TEST(RdmaMessages, AMessageMustHaveTheBytesThatItNames) {
  std::array<std::byte, kMessageBytes + 100> bytes{};
  encode(RdmaMessage{RdmaMessage::Kind::kBytes, 7, 100}, std::span(bytes).first<kMessageBytes>());
  const auto message = decode_message(bytes);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->credits, 7);
  EXPECT_EQ(message->bytes, 100u);
  EXPECT_FALSE(decode_message(Bytes(bytes).first(kMessageBytes + 99)));
  EXPECT_FALSE(decode_message(Bytes(bytes).first(kMessageBytes - 1)));
  encode(RdmaMessage{RdmaMessage::Kind::kCredits, 7, 100}, std::span(bytes).first<kMessageBytes>());
  EXPECT_FALSE(decode_message(bytes)) << "credits have no body";
  encode(RdmaMessage{RdmaMessage::Kind::kCredits, 7, 0}, std::span(bytes).first<kMessageBytes>());
  EXPECT_TRUE(decode_message(Bytes(bytes).first(kMessageBytes)));
  encode(RdmaMessage{RdmaMessage::Kind::kCredits, 0, 0}, std::span(bytes).first<kMessageBytes>());
  EXPECT_FALSE(decode_message(Bytes(bytes).first(kMessageBytes))) << "it says nothing, and costs the peer nothing";
  encode(RdmaMessage{RdmaMessage::Kind::kBytes, 7, 0}, std::span(bytes).first<kMessageBytes>());
  EXPECT_FALSE(decode_message(Bytes(bytes).first(kMessageBytes))) << "bytes have one";
  for (const int kind : {0, 4, 0xffff}) {
    encode(RdmaMessage{RdmaMessage::Kind(kind), 7, 100}, std::span(bytes).first<kMessageBytes>());
    EXPECT_FALSE(decode_message(bytes)) << kind;
  }
}

TEST(RdmaMessages, ABlockThatNoMemoryHoldsIsRefused) {
  const RdmaBlock good{.block = 3, .use = RdmaBlock::Use::kWrite, .key = 99, .address = 1 << 20, .bytes = 4096};
  const auto block = decode_block(encode(good));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->block, 3u);
  EXPECT_EQ(block->use, RdmaBlock::Use::kWrite);
  EXPECT_EQ(block->key, 99u);
  EXPECT_EQ(block->address, 1u << 20);
  EXPECT_EQ(block->bytes, 4096u);
  RdmaBlock bad = good;
  bad.bytes = 0;
  EXPECT_FALSE(decode_block(encode(bad)));
  bad.bytes = ~std::uint64_t{0};
  EXPECT_FALSE(decode_block(encode(bad)));
  bad = good;
  bad.use = RdmaBlock::Use(3);
  EXPECT_FALSE(decode_block(encode(bad)));
  EXPECT_FALSE(decode_block(Bytes(encode(good)).first(31)));
}

}  // namespace
}  // namespace disttrain::transport
