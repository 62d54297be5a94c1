// Addresses that can't be reached by RDMA, and networks in which only small packets arrive.
#include <cerrno>
#include <optional>

#include "tests/transport/rdma/device_fixture.h"
#include "transport/rdma/dial.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

TEST(RdmaDialTest, AnUnreachableAddressHasOneOfThreeReasons) {
  EXPECT_NE(why_not_reached(ENODEV).find("no RDMA device of this host reaches the address"), std::string::npos);
  EXPECT_EQ(why_not_reached(-EADDRNOTAVAIL), why_not_reached(ENODEV)) << "events have the sign changed";
  EXPECT_EQ(why_not_reached(-ETIMEDOUT), "the host there doesn't answer");
  EXPECT_EQ(why_not_reached(EHOSTUNREACH), "the host there doesn't answer");
  EXPECT_EQ(why_not_reached(-EINVAL), "Invalid argument");
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

// The address is known, but no answer comes by RDMA. So it is with a host that has no device.
TEST_F(Rdma, AHostThatDoesNotAnswerMayHaveNoDevice) {
  if (output_of("ip link show v0").find("does not exist") != std::string::npos)
    GTEST_SKIP() << "the devices aren't those of tests/rdma";
  connect();  // so the neighbour is known
  for (const std::string name : {"v0", "v1"})
    EXPECT_EQ(output_of("tc qdisc add dev " + name + " root netem loss 100%"), "");
  std::optional<Result<std::unique_ptr<Connection>>> result;
  transport.for_steps().dial(loop, listener->address(), hello_frame(), std::chrono::seconds(3),
                             [&result](auto r) { result = std::move(r); });
  EXPECT_TRUE(run_until_true([&result] { return result.has_value(); }));
  for (const std::string name : {"v0", "v1"}) EXPECT_EQ(output_of("tc qdisc del dev " + name + " root"), "");
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_NE(result->error().message.find("may have no RDMA device"), std::string::npos) << result->error().message;
}

// Two ends of processes that need not use RDMA. Here RDMA is used within one host nevertheless.
class RdmaByChoice : public Rdma {
 protected:
  void SetUp() override {
    if (!has_rdma_devices()) GTEST_SKIP() << "this host has no RDMA device";
    port = std::move(*tcp.listen(loop, "10.77.0.2:0", {}, [](auto) {}));
    auto made = listen_rdma(loop, port->address(), {}, devices, traffic, on_arrival());
    ASSERT_TRUE(made) << made.error().message;
    listener = std::move(*made);
  }

  Result<std::unique_ptr<Connection>> dial_once() {
    std::optional<Result<std::unique_ptr<Connection>>> result;
    dial_rdma(loop, port->address(), hello_frame(), std::chrono::seconds(30), OwnHost::kDial, devices, traffic,
              [&result](auto r) { result = std::move(r); });
    EXPECT_TRUE(run_until_true([&result] { return result.has_value(); }));
    return std::move(*result);
  }

  const std::shared_ptr<RdmaDevices> devices = std::make_shared<RdmaDevices>(false);
  const std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  TcpTransport tcp;
  std::unique_ptr<Listener> port;  // keeps the port for this test
};

// Connection requests are small, so they arrive. Without a memory of the failure, each new dial would succeed.
TEST_F(RdmaByChoice, AHostThatLargePacketsDontReachIsAvoided) {
  if (output_of("ip link show v0").find("does not exist") != std::string::npos)
    GTEST_SKIP() << "the devices aren't those of tests/rdma";
  for (const std::string name : {"v0", "v1"})
    EXPECT_EQ(output_of("tc qdisc add dev " + name + " clsact && tc filter add dev " + name +
                        " egress basic match 'meta(pkt_len gt 1000)' action drop"),
              "");
  auto dialled = dial_once();
  ASSERT_TRUE(dialled) << dialled.error().message;
  (*dialled)->share(arena);
  End client(std::move(*dialled)), server(accepted());
  client.start();
  server.start();
  client.send(push(Bytes(memory.bytes())));
  EXPECT_TRUE(run_until_true([&] { return server.closed == 1; }));
  for (const std::string name : {"v0", "v1"}) EXPECT_EQ(output_of("tc qdisc del dev " + name + " clsact"), "");
  EXPECT_NE(server.reason.message.find("retry counter exceeded"), std::string::npos) << server.reason.message;
  const auto again = dial_once();
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("it failed less than a minute ago"), std::string::npos) << again.error().message;
}

// A shard may refuse a hello. This test and the next one can only fail if packets are delayed (tests/rdma/vm_test.py).
TEST_F(RdmaByChoice, AnEndThatAnswersAndClosesIsntAvoided) {
  for (int i = 0; i < 3; ++i) {
    auto dialled = dial_once();
    ASSERT_TRUE(dialled) << dialled.error().message;
    End client(std::move(*dialled)), server(accepted());
    client.start();
    server.start();
    server.send(wire::FrameType::kControl, 0, {});
    server.close();
    ASSERT_TRUE(run_until_true([&] { return client.closed == 1; }));
    EXPECT_EQ(client.frames.size(), 1u);
  }
}

TEST_F(RdmaByChoice, AnEndThatClosesAtOnceIsntAvoided) {
  for (int i = 0; i < 3; ++i) {
    auto dialled = dial_once();
    ASSERT_TRUE(dialled) << dialled.error().message;
    (*dialled)->close();
  }
}

}  // namespace
}  // namespace disttrain::transport
