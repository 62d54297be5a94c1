// Answers that are written into the memory that the peer has offered, and those that aren't.
#include <algorithm>

#include "tests/transport/rdma/device_fixture.h"

namespace disttrain::transport {
namespace {

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
    client.send(wire::FrameType::kPush, 0, payload);
    ASSERT_TRUE(run_until(other, [&] { return server.frames.size() == i; }));
    loop.restart();
    EXPECT_EQ(loop.poll(), 0u) << i;
  }
}

}  // namespace
}  // namespace disttrain::transport
