// Tests for rdma alone: messages, credits, payloads that are read and written by RDMA, and peers that misuse what they
// share. The tests named Rdma need a device; tests/rdma makes one.
#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <set>

#include "tests/transport/ends.h"
#include "transport/rdma/blocks.h"
#include "transport/rdma/credits.h"
#include "transport/rdma/device.h"
#include "transport/rdma/message.h"
#include "transport/rdma/staging.h"
#include "transport/rdma/transport.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

using wire::FrameType;

// ----------------------------------------------------------------------------------------- Without a device

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

TEST(RdmaBlocks, OnlyBytesWithinABlockAreFound) {
  using Use = RdmaBlock::Use;
  RemoteBlocks blocks;
  ASSERT_TRUE(blocks.add({.block = 1, .use = Use::kRead, .key = 5, .address = 1 << 20, .bytes = 4096}));
  const auto found = blocks.find(1, Use::kRead, 64, 4032);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, (1u << 20) + 64);
  EXPECT_EQ(found->key, 5u);
  EXPECT_FALSE(blocks.find(1, Use::kRead, 64, 4033));
  EXPECT_FALSE(blocks.find(1, Use::kRead, ~std::uint64_t{0} - 3, 8));
  EXPECT_FALSE(blocks.find(1, Use::kRead, 8, ~std::uint64_t{0}));
  EXPECT_FALSE(blocks.find(1, Use::kRead, 2, 8)) << "no float begins there";
  EXPECT_FALSE(blocks.find(1, Use::kWrite, 0, 8)) << "it may only be read";
  EXPECT_FALSE(blocks.find(2, Use::kRead, 0, 8));
}

TEST(RdmaBlocks, APeerSharesABlockOnceAndNotTooMany) {
  using Use = RdmaBlock::Use;
  RemoteBlocks blocks;
  for (std::uint64_t block = 0; block < kMaxRdmaBlocks; ++block) {
    ASSERT_TRUE(blocks.add({.block = block, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8})) << block;
    if (block == 0) {
      EXPECT_FALSE(blocks.add({.block = block, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8}));
    }
  }
  EXPECT_FALSE(blocks.add({.block = 99, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8}));
}

TEST(RdmaCreditsTest, APeerThatLiesIsFound) {
  RdmaCredits credits(4, 4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(credits.arrived());
  EXPECT_FALSE(credits.arrived()) << "it had four";
  EXPECT_FALSE(credits.returned(1)) << "nothing was sent";
  credits.sent();
  EXPECT_FALSE(credits.returned(2));
  EXPECT_TRUE(credits.returned(1));
}

// Two ends in any order of sending, receiving and emptying: nobody runs out of slots, and nobody waits for ever.
TEST(RdmaCreditsTest, TwoEndsNeverRunOutOfSlots) {
  constexpr std::uint32_t kOwn = 8, kSpare = 4;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    struct Wire {
      bool needs_credit;
      std::uint32_t credits;
    };
    struct EndOfWire {
      RdmaCredits credits{kOwn, kOwn};
      std::deque<Wire> arriving;  // each holds a slot of this end
      std::uint32_t unread = 0;
      std::uint32_t sent = 0, read = 0;
    } ends[2];
    for (int i = 0; i < 20'000; ++i) {
      EndOfWire& self = ends[random() % 2];
      EndOfWire& other = &self == &ends[0] ? ends[1] : ends[0];
      switch (random() % 4) {
        case 0:
          if (!self.credits.may_send()) break;
          self.credits.sent();
          ++self.sent;
          other.arriving.push_back({true, self.credits.take_returned()});
          break;
        case 1:
          if (self.arriving.empty()) break;
          ASSERT_TRUE(self.credits.returned(self.arriving.front().credits)) << "seed " << seed;
          if (self.arriving.front().needs_credit) {
            ASSERT_TRUE(self.credits.arrived()) << "seed " << seed;
            ++self.unread;
          }
          self.arriving.pop_front();
          break;
        case 2:
          if (self.unread == 0) break;
          --self.unread;
          ++self.read;
          self.credits.emptied();
          break;
        case 3:
          if (self.credits.must_return()) other.arriving.push_back({false, self.credits.take_returned()});
          break;
      }
      ASSERT_LE(other.arriving.size() + other.unread, kOwn + kSpare) << "seed " << seed;
    }
    EXPECT_GT(ends[0].sent, 1000u) << "seed " << seed;
    EXPECT_GT(ends[1].read, 1000u) << "seed " << seed;
  }
}

// Against a list of the bytes in use.
TEST(RdmaStaging, PiecesNeverOverlap) {
  constexpr std::size_t kSize = 1000;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    Staging staging(kSize);
    std::deque<std::pair<std::size_t, std::size_t>> pieces;
    for (int i = 0; i < 5'000; ++i) {
      if (random() % 2 == 0 && !pieces.empty()) {
        pieces.pop_front();
        staging.free_oldest();
      } else {
        const std::size_t bytes = 1 + random() % 400;
        const auto begin = staging.take(bytes);
        if (!begin) {
          ASSERT_FALSE(pieces.empty() && bytes <= kSize) << "seed " << seed;
          continue;
        }
        ASSERT_LE(*begin + bytes, kSize) << "seed " << seed;
        for (const auto& [from, to] : pieces)
          ASSERT_TRUE(*begin + bytes <= from || to <= *begin) << "seed " << seed << ", turn " << i;
        pieces.emplace_back(*begin, *begin + bytes);
      }
      ASSERT_EQ(staging.pieces(), pieces.size());
    }
  }
}

// ----------------------------------------------------------------------------------------- With a device

constexpr std::size_t kBytes = 3 * 4096 + 64;

OutgoingFrame hello() {
  OutgoingFrame frame;
  frame.header.type = FrameType::kHello;
  return frame;
}

// A frame that lends a payload, and offers memory for answers.
OutgoingFrame push(Bytes payload, MutableBytes answers = {}) {
  OutgoingFrame frame;
  frame.header.type = FrameType::kPush;
  frame.payload = payload;
  frame.lifetime = Payload::kFrozenUntilAnswered;
  frame.answers = answers;
  return frame;
}

OutgoingFrame answer(Bytes payload, std::uint64_t at) {
  OutgoingFrame frame;
  frame.header.type = FrameType::kParameters;
  frame.payload = payload;
  frame.lifetime = Payload::kCopied;
  frame.answer_at = at;
  return frame;
}

// A handler whose payloads belong at one place of its memory.
class Placed final : public End {
 public:
  Placed(std::unique_ptr<Connection> c, MutableBytes place) : End(std::move(c)), place_(place) {}
  Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes) override {
    ++asked;
    return place_.first(header.payload_bytes);
  }
  void on_frame(const wire::FrameHeader& header, Bytes, Bytes payload) override {
    EXPECT_EQ(payload.data(), place_.data());
    frames.push_back({header, {}, {payload.begin(), payload.end()}});
    if (then) then();
  }
  int asked = 0;  // how often it has said where a payload lands

 private:
  const MutableBytes place_;
};

class Rdma : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_rdma_devices()) GTEST_SKIP() << "this host has no RDMA device";
    auto made = transport.listen(loop, "10.77.0.2:0", {},
                                 [this](std::unique_ptr<Arrival> arrival) { arrivals.push_back(std::move(arrival)); });
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  Result<std::unique_ptr<Connection>> dial(const std::string& address) {
    std::optional<Result<std::unique_ptr<Connection>>> result;
    transport.for_steps().dial(loop, address, hello(), std::chrono::seconds(30),
                               [&result](auto r) { result = std::move(r); });
    EXPECT_TRUE(run_until(loop, [&result] { return result.has_value(); }));
    return std::move(*result);
  }

  // Two connected ends: the one that has dialled, and the other one.
  std::pair<std::unique_ptr<Connection>, std::unique_ptr<Connection>> connect() {
    auto dialled = dial(listener->address());
    EXPECT_TRUE(dialled) << dialled.error().message;
    EXPECT_TRUE(run_until(loop, [this] { return !arrivals.empty(); }));
    auto accepted = arrivals.back()->adopt(loop);
    arrivals.pop_back();
    return {std::move(*dialled), std::move(accepted)};
  }

  bool run_until_true(const std::function<bool()>& done) { return run_until(loop, done); }

  asio::io_context loop;
  RdmaTransport transport{RdmaOptions{.cluster = "test", .is_required = true, .tcp = {}}};
  std::vector<std::unique_ptr<Arrival>> arrivals;
  std::unique_ptr<Listener> listener;
  Arena arena{ArenaKind::kShared};
  Memory memory{arena, kBytes, Paging::kTouched};
};

TEST_F(Rdma, ALentPayloadIsReadIntoItsLanding) {
  auto [dialled, accepted] = connect();
  EXPECT_STREQ(dialled->wire(), "rdma");
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  std::ranges::copy(pattern(kBytes, 1), memory.bytes().begin());
  for (std::size_t i = 1; i <= 40; ++i) {
    const Bytes payload = Bytes(memory.bytes()).subspan(4 * i, 4096 + i);
    client.send(push(payload));
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == i; }));
    EXPECT_TRUE(std::ranges::equal(server.frames.back().payload, payload)) << i;
  }
  EXPECT_EQ(client.connection->bytes_sent(), server.connection->bytes_received());
  EXPECT_TRUE(server.sent.empty());
}

TEST_F(Rdma, ALandingInASharedArenaIsReadIntoDirectly) {
  constexpr std::size_t kMost = wire::kMaxPayloadBytes;
  Memory gradients(arena, kMost, Paging::kTouched);
  Arena own(ArenaKind::kPrivate);  // the receiver needn't show its memory to other processes
  Memory landing(own, kMost, Paging::kOnDemand);
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  accepted->share(own);
  End client(std::move(dialled));
  Placed server(std::move(accepted), landing.bytes());
  client.start();
  server.start();
  for (unsigned i = 1; i <= 8; ++i) {
    std::ranges::copy(pattern(kMost, i), gradients.bytes().begin());
    client.send(push(Bytes(gradients.bytes())));
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == i; }));
    EXPECT_EQ(server.frames.back().payload, pattern(kMost, i)) << i;
  }
}

TEST_F(Rdma, ManyLentPayloadsComeInOrder) {
  constexpr std::size_t kPiece = 64 * 1024, kPieces = 32;
  Memory gradients(arena, kPiece * kPieces, Paging::kTouched);
  std::ranges::copy(pattern(kPiece * kPieces, 5), gradients.bytes().begin());
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  for (std::size_t i = 0; i < kPieces; ++i) {
    client.send(push(Bytes(gradients.bytes()).subspan(i * kPiece, kPiece)));
    client.send(FrameType::kControl, 0, {});
  }
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 2 * kPieces; }));
  for (std::size_t i = 0; i < kPieces; ++i)
    EXPECT_TRUE(std::ranges::equal(server.frames[2 * i].payload, Bytes(gradients.bytes()).subspan(i * kPiece, kPiece)))
        << i;
}

TEST_F(Rdma, APausedConnectionKeepsAPayloadThatArrives) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  std::ranges::copy(pattern(kBytes, 3), memory.bytes().begin());
  server.then = [&] { server.connection->pause_receiving(); };
  for (int i = 0; i < 3; ++i) client.send(push(Bytes(memory.bytes())));
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == i; }));
    run_ready(loop);
    EXPECT_EQ(server.frames.size(), i);
    EXPECT_EQ(server.frames.back().payload, pattern(kBytes, 3));
    server.connection->resume_receiving();
  }
}

TEST_F(Rdma, ALentPayloadOfAnUnknownFrameIsDropped) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  server.refuse_landing = true;  // it isn't called
  OutgoingFrame frame = push(Bytes(memory.bytes()));
  frame.header.type = FrameType(1234);
  client.send(frame);
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  EXPECT_EQ(server.frames[0].payload.size(), kBytes);
}

TEST_F(Rdma, MemoryOfAnotherArenaTravelsAsBytes) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  const auto elsewhere = pattern(kBytes, 3);
  client.send(push(elsewhere));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  EXPECT_EQ(server.landing, elsewhere);
}

TEST_F(Rdma, AnswersAreWrittenIntoTheOfferedMemory) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  constexpr std::size_t kAt = 4096;
  Placed client(std::move(dialled), memory.bytes().subspan(kAt));
  End server(std::move(accepted));
  client.start();
  server.start();
  client.send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  for (unsigned i = 1; i <= 100; ++i) {  // more than are written at once
    const auto values = pattern(kBytes - kAt, i);
    server.send(answer(values, kAt));
  }
  ASSERT_TRUE(run_until_true([&] { return client.frames.size() == 100; }));
  EXPECT_EQ(client.frames.back().payload, pattern(kBytes - kAt, 100));
  EXPECT_TRUE(std::ranges::equal(memory.bytes().subspan(kAt), pattern(kBytes - kAt, 100)));
  EXPECT_EQ(client.connection->bytes_received(), server.connection->bytes_sent());
}

// If too many answers are under way, some travel in their frames. A later one that is written must not come before
// them. The test has most to find if packets are delayed (tests/rdma/vm_test.py).
TEST_F(Rdma, TheLastAnswerForAPlaceStaysThere) {
  constexpr unsigned kAnswers = 100;
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  Placed client(std::move(dialled), memory.bytes());
  End server(std::move(accepted));
  client.start();
  server.start();
  client.send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  for (unsigned i = 1; i <= kAnswers; ++i) {
    server.send(answer(pattern(kBytes, i), 0));
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(run_until_true([&] { return client.frames.size() == kAnswers; }));
  EXPECT_TRUE(client.frames.back().payload == pattern(kBytes, kAnswers));
}

TEST_F(Rdma, AnAnswerBeyondTheOfferedMemoryTravelsAsBytes) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  client.send(push(Bytes(memory.bytes()).first(64), memory.bytes().first(4096)));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
  const auto values = pattern(64, 7);
  server.send(answer(values, 4096 - 60));
  ASSERT_TRUE(run_until_true([&] { return client.frames.size() == 1; }));
  EXPECT_EQ(client.landing, values);
}

TEST_F(Rdma, ASentFrameWakesOnlyTheReceiver) {
  asio::io_context other;
  auto dialled = dial(listener->address());
  ASSERT_TRUE(dialled) << dialled.error().message;
  ASSERT_TRUE(run_until_true([this] { return !arrivals.empty(); }));
  End client(std::move(*dialled)), server(arrivals.back()->adopt(other));
  arrivals.clear();
  client.start();
  server.start();
  run_ready(loop);
  const auto payload = pattern(1000, 1);
  for (std::size_t i = 1; i <= 8; ++i) {
    client.send(FrameType::kPush, 0, payload);
    ASSERT_TRUE(run_until(other, [&] { return server.frames.size() == i; }));
    loop.restart();
    EXPECT_EQ(loop.poll(), 0u) << i;
  }
}

// The fence: after close() neither end writes into the other one's memory.
TEST_F(Rdma, NothingIsWrittenIntoMemoryAfterClose) {
  constexpr std::size_t kMost = wire::kMaxPayloadBytes;
  Arena own(ArenaKind::kPrivate);
  for (int round = 0; round < 10; ++round) {
    Memory values(arena, kMost, Paging::kTouched);
    Memory landing(own, kMost, Paging::kTouched);
    auto [dialled, accepted] = connect();
    dialled->share(arena);
    accepted->share(own);
    Placed client(std::move(dialled), values.bytes());
    Placed server(std::move(accepted), landing.bytes());
    client.start();
    server.start();
    client.send(push(Bytes(values.bytes()), values.bytes()));
    server.then = [&] {
      for (unsigned i = 0; i < 4; ++i) server.send(answer(pattern(kMost, i), 0));
    };
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
    if (round % 2 == 0) {
      client.close();  // answers are on their way
      std::ranges::fill(values.bytes(), std::byte{0xee});
      ASSERT_TRUE(run_until_true([&] { return server.closed == 1; }));
      EXPECT_TRUE(std::ranges::all_of(values.bytes(), [](std::byte b) { return b == std::byte{0xee}; }));
    } else {
      ASSERT_TRUE(run_until_true([&] { return client.frames.size() == 4; }));
      client.send(push(Bytes(values.bytes())));
      ASSERT_TRUE(run_until_true([&] { return server.asked == 2; }));  // now the payload is on its way
      server.close();
      std::ranges::fill(landing.bytes(), std::byte{0xee});
      ASSERT_TRUE(run_until_true([&] { return client.closed == 1; }));
      EXPECT_TRUE(std::ranges::all_of(landing.bytes(), [](std::byte b) { return b == std::byte{0xee}; }));
    }
  }
}

// The test can only fail if packets are delayed (tests/rdma/vm_test.py), because the first connection must linger.
TEST_F(Rdma, ANewArenaAtTheAddressOfAnOldOneIsRegisteredAnew) {
  std::ranges::copy(pattern(kBytes, 9), memory.bytes().begin());
  auto [dialled, accepted] = connect();
  auto [dialled_later, accepted_later] = connect();
  dialled->share(arena);
  dialled_later->share(arena);
  End client(std::move(dialled)), later_client(std::move(dialled_later));
  client.start();
  later_client.start();
  std::optional<Arena> own(ArenaKind::kPrivate);
  auto landing = std::make_unique<Memory>(*own, kBytes, Paging::kTouched);
  const std::byte* const address = landing->bytes().data();
  accepted->share(*own);
  Placed server(std::move(accepted), landing->bytes());
  server.start();
  later_client.send(push(Bytes(memory.bytes())));
  client.send(push(Bytes(memory.bytes())));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));  // the earlier push has arrived too
  server.send(FrameType::kControl, 0, {});
  server.close();
  landing.reset();
  own.emplace(ArenaKind::kPrivate);
  landing = std::make_unique<Memory>(*own, kBytes, Paging::kTouched);
  if (landing->bytes().data() != address) GTEST_SKIP() << "the system gave the new block another address";
  accepted_later->share(*own);
  Placed later_server(std::move(accepted_later), landing->bytes());
  later_server.start();
  ASSERT_TRUE(run_until_true([&] { return later_server.frames.size() == 1; }));
  EXPECT_EQ(later_server.frames[0].payload, pattern(kBytes, 9));
}

TEST_F(Rdma, APeerThatClosesWhileItsPayloadIsFetchedIsNoticed) {
  Memory gradients(arena, wire::kMaxPayloadBytes, Paging::kTouched);
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  End client(std::move(dialled)), server(std::move(accepted));
  client.start();
  server.start();
  client.send(push(Bytes(gradients.bytes())));
  client.close();
  ASSERT_TRUE(run_until_true([&] { return server.closed == 1; }));
  EXPECT_EQ(server.reason.code, ErrorCode::kUnavailable);
  EXPECT_NE(server.reason.message.find("closed the connection"), std::string::npos) << server.reason.message;
}

TEST_F(Rdma, AHostWithoutAListenerOfRdmaIsToldFromOneWith) {
  TcpTransport tcp;
  auto only_tcp = tcp.listen(loop, "10.77.0.2:0", {}, [](auto) {});
  ASSERT_TRUE(only_tcp);
  const auto dialled = dial((*only_tcp)->address());
  ASSERT_FALSE(dialled);
  EXPECT_NE(dialled.error().message.find("nobody listens there by RDMA"), std::string::npos) << dialled.error().message;
}

TEST_F(Rdma, AnAddressWithoutADeviceIsAConfigError) {
  const auto made = transport.listen(loop, "127.0.0.1:0", {}, [](auto) {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kConfig);
  EXPECT_NE(made.error().message.find("no RDMA device of this host has the address"), std::string::npos)
      << made.error().message;
}

// The kernel's counts of RDMA objects on this host: "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0", a line for each
// device.
std::string resources() {
  std::FILE* const shows = ::popen("rdma resource show 2>&1", "r");
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), shows));
  ::pclose(shows);
  return text;
}

TEST_F(Rdma, ThousandConnectionsLeaveNothingBehind) {
  const auto connect_once = [&] {
    auto [dialled, accepted] = connect();
    dialled->share(arena);
    accepted->share(arena);
    End client(std::move(dialled)), server(std::move(accepted));
    client.start();
    server.start();
    client.send(push(Bytes(memory.bytes()).first(64), memory.bytes()));
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));
    const auto values = pattern(64, 1);
    server.then = nullptr;
    server.send(answer(values, 0));
    client.close();
    ASSERT_TRUE(run_until_true([&] { return server.closed == 1; }));
  };
  ASSERT_NO_FATAL_FAILURE(connect_once());
  EXPECT_TRUE(run_until_true([&] { return loop.poll() == 0; }));
  const std::string before = resources();
  ASSERT_NE(before.find(" mr 0 "), std::string::npos) << before;
  for (int i = 0; i < 1000; ++i) ASSERT_NO_FATAL_FAILURE(connect_once()) << i;
  EXPECT_TRUE(run_until_true([&] { return resources() == before; })) << before << resources();
}

}  // namespace
}  // namespace disttrain::transport
