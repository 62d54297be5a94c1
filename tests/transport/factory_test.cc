#include "transport/factory/factory.h"

#include <gtest/gtest.h>

#include <string_view>

namespace disttrain::transport {
namespace {

TEST(TransportFactory, MakesTheTransportThatTheConfigurationNames) {
  for (const char* kind : {"auto", "tcp", "shm", "rdma"}) {
    TransportConfig config;
    config.kind = kind;
    const auto transport = make_transport(config, "test");
    ASSERT_TRUE(transport) << transport.error().message;
    EXPECT_STREQ((*transport)->name(), kind);
    // These have another way for the connections of a step.
    EXPECT_EQ(&(*transport)->for_steps() == transport->get(), std::string_view(kind) == "tcp");
  }
  EXPECT_STREQ(make_client_transport()->name(), "tcp");
}

TEST(TransportFactory, RefusesAKindThatThisVersionDoesNotHave) {
  TransportConfig config;
  config.kind = "quic";
  const auto transport = make_transport(config, "test");
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, ErrorCode::kConfig);
  EXPECT_NE(transport.error().message.find("transport.kind = \"quic\""), std::string::npos);
}

TEST(TransportFactory, RefusesACongestionControlThatTheKernelDoesNotHave) {
  TransportConfig config;
  config.congestion_control = "carrier-pigeon";
  const auto transport = make_transport(config, "test");
  ASSERT_FALSE(transport);
  EXPECT_NE(transport.error().message.find("carrier-pigeon"), std::string::npos) << transport.error().message;
}

}  // namespace
}  // namespace disttrain::transport
