// Addresses that can't be reached by RDMA.
#include "tests/transport/rdma/device_fixture.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

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
