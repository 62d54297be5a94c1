// Addresses that can't be reached by RDMA.
#include <cerrno>

#include "tests/transport/rdma/device_fixture.h"
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

}  // namespace
}  // namespace disttrain::transport
