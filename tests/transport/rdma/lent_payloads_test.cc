// Payloads that the receiver reads out of the sender's memory.
#include <algorithm>

#include "tests/transport/rdma/device_fixture.h"

namespace disttrain::transport {
namespace {

TEST_F(Rdma, ALandingInASharedArenaIsReadIntoDirectly) {
  constexpr std::size_t kMost = wire::kMaxPayloadBytes;
  Memory gradients(arena, kMost, Paging::kTouched);
  Arena own(ArenaKind::kPrivate);  // the receiver needn't show its memory to other processes
  Memory landing(own, kMost, Paging::kOnDemand);
  auto [dialled, accepted] = connect();
  dialled->share(arena);
  accepted->share(own);
  End client(std::move(dialled)), server(std::move(accepted));
  server.place = landing.bytes();
  client.start();
  server.start();
  for (unsigned i = 1; i <= 8; ++i) {
    std::ranges::copy(pattern(kMost, i), gradients.bytes().begin());
    client.send(push(Bytes(gradients.bytes())));
    ASSERT_TRUE(run_until_true([&] { return server.frames.size() == i; }));
    EXPECT_EQ(server.frames.back().payload, pattern(kMost, i)) << i;
  }
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
