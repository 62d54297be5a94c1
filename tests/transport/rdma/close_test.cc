// The end of a connection leaves no access to memory and no registrations behind.
#include <algorithm>
#include <optional>
#include <vector>

#include "tests/transport/rdma/device_fixture.h"

namespace disttrain::transport {
namespace {

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
    End client(std::move(dialled)), server(std::move(accepted));
    client.place = values.bytes();
    server.place = landing.bytes();
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
  End server(std::move(accepted));
  server.place = landing->bytes();
  server.start();
  later_client.send(push(Bytes(memory.bytes())));
  client.send(push(Bytes(memory.bytes())));
  ASSERT_TRUE(run_until_true([&] { return server.frames.size() == 1; }));  // the earlier push has arrived too
  server.send(wire::FrameType::kControl, 0, {});
  server.close();
  landing.reset();
  own.emplace(ArenaKind::kPrivate);
  // The system takes the first hole that is large enough. So these fill all holes before that of the old block.
  Arena others(ArenaKind::kPrivate);
  std::vector<std::unique_ptr<Memory>> fillers;
  do fillers.push_back(std::make_unique<Memory>(others, kBytes, Paging::kTouched));
  while (fillers.back()->bytes().data() != address && fillers.size() < 100'000);
  fillers.pop_back();
  landing = std::make_unique<Memory>(*own, kBytes, Paging::kTouched);
  ASSERT_EQ(landing->bytes().data(), address);
  accepted_later->share(*own);
  End later_server(std::move(accepted_later));
  later_server.place = landing->bytes();
  later_server.start();
  ASSERT_TRUE(run_until_true([&] { return later_server.frames.size() == 1; }));
  EXPECT_EQ(later_server.frames[0].payload, pattern(kBytes, 9));
}

// A peer may need long to answer that it knows of the end.
TEST_F(Rdma, AClosedEndKeepsNoMemoryLocked) {
  auto [dialled, accepted] = connect();
  const int before = registrations();
  accepted->close();  // the loop doesn't run
  EXPECT_EQ(registrations(), before - 1);
  dialled->close();
  EXPECT_EQ(registrations(), before - 2);
}

TEST_F(Rdma, ABlockThatHasGoneIsntLockedForLong) {
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  Arena own(ArenaKind::kPrivate);
  accepted->share(own);
  End client(std::move(dialled));
  client.start();
  struct Moving final : End {  // lands each payload in a new block
    Moving(std::unique_ptr<Connection> c, Arena& a) : End(std::move(c)), arena(a) {}
    Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes) override {
      block = std::make_unique<Memory>(arena, header.payload_bytes, Paging::kTouched);
      return block->bytes();
    }
    void on_frame(const wire::FrameHeader&, Bytes, Bytes) override { ++count; }
    Arena& arena;
    std::unique_ptr<Memory> block;
    int count = 0;
  } server(std::move(accepted), own);
  server.start();
  int locked = 0;
  for (int i = 1; i <= 4; ++i) {
    client.send(push(Bytes(memory.bytes())));
    ASSERT_TRUE(run_until_true([&] { return server.count == i; }));
    if (i == 1) locked = registrations();
  }
  EXPECT_EQ(registrations(), locked);
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
  const std::string before = rdma_resources();
  ASSERT_NE(before.find(" mr 0 "), std::string::npos) << before;
  for (int i = 0; i < 1000; ++i) ASSERT_NO_FATAL_FAILURE(connect_once()) << i;
  EXPECT_TRUE(run_until_true([&] { return rdma_resources() == before; })) << before << rdma_resources();
}

}  // namespace
}  // namespace disttrain::transport
