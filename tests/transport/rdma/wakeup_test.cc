// Which completions wake a thread.
#include "tests/transport/rdma/device_fixture.h"

namespace disttrain::transport {
namespace {

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
