// Payloads that the receiver reads out of the sender's memory.
#include <algorithm>

#include "tests/transport/rdma/device_fixture.h"

namespace disttrain::transport {
namespace {

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
    client.send(wire::FrameType::kControl, 0, {});
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
  frame.header.type = wire::FrameType(1234);
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

}  // namespace
}  // namespace disttrain::transport
