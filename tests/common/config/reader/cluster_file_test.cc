// Each mistake in a cluster.toml gives one clear message with its place and the right code; all mistakes are reported
// at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/reader/reader.h"
#include "tests/common/config/reader/texts.h"

namespace disttrain::config {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

TEST(ClusterFile, MinimalFileHasTheDefaults) {
  auto cluster = parse_cluster(kCluster, "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "disttrain");
  EXPECT_EQ(cluster->chief.address, "127.0.0.1:7100");
  EXPECT_EQ(cluster->workers.at(0).threads, 1u);
  EXPECT_EQ(cluster->heartbeat.timeout, 1s);
  EXPECT_EQ(cluster->transport.hello_timeout, 2s);
}

TEST(ClusterFile, EveryKeyIsRead) {
  auto cluster = parse_cluster(R"(
[cluster]
name = "mine"
[chief]
address = "[::1]:7100"
state_directory = "/tmp/x"
max_queued_jobs = 3
[[ps]]
address = "a:1"
shards = 2
memory = "8GiB"
cores = [0, 1]
[[ps]]
address = "a:2"
[[worker]]
address = "b:1"
threads = 4
cores = [2]
device = "pjrt:/opt/plugin.so"
[transport]
kind = "tcp"
credits = 8
max_connections = 10
hello_timeout = "500ms"
congestion_control = "cubic"
[heartbeat]
timeout = "1.5s"
[metrics]
listen = "0.0.0.0"
[log]
level = "debug"
format = "json"
rate = 5
)",
                               "cluster.toml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "mine");
  EXPECT_EQ(cluster->chief.max_queued_jobs, 3u);
  ASSERT_EQ(cluster->ps.size(), 2u);
  EXPECT_EQ(cluster->ps[0].memory_bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(cluster->ps[0].cores, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(cluster->ps[1].memory_bytes, 0u);
  EXPECT_EQ(cluster->workers.at(0).threads, 4u);
  EXPECT_EQ(cluster->workers.at(0).device, "pjrt:/opt/plugin.so");
  EXPECT_EQ(cluster->transport.credits, 8u);
  EXPECT_EQ(cluster->transport.congestion_control, "cubic");
  EXPECT_EQ(cluster->heartbeat.timeout, 1500ms);
  EXPECT_EQ(cluster->metrics.listen, "0.0.0.0");
  EXPECT_EQ(cluster->log.format, "json");
}

TEST(ClusterFile, MetricsAreServedAtAHostAtAnyPortOrNowhere) {
  for (const char* listen : {"", "0.0.0.0", "::1", "::", "host.example", "127.0.0.1:0", "[::1]:0"}) {
    const auto cluster = parse_cluster("[metrics]\nlisten = \"" + std::string(listen) + "\"" + kCluster, "x");
    ASSERT_TRUE(cluster) << cluster.error().message;
    EXPECT_EQ(cluster->metrics.listen, listen);
  }
  for (const char* listen : {":0", "host:1", "[::1]", "[::1]:1", "a b", "http://host", "[]:0"})
    EXPECT_FALSE(parse_cluster("[metrics]\nlisten = \"" + std::string(listen) + "\"" + kCluster, "x")) << listen;
}

TEST(ClusterFile, PortsOfMetricsCollideOnlyWhereTheyAreServed) {
  for (const char* listen : {"", "127.0.0.1:0"})
    for (const char* port : {"6110", "65535"})
      EXPECT_TRUE(parse_cluster("[metrics]\nlisten = \"" + std::string(listen) +
                                    "\"\n[chief]\naddress = \"127.0.0.1:" + port + "\"" + kCluster,
                                "x"))
          << listen;
}

TEST(ClusterFile, HashIsOfTheMeaningOnly) {
  const auto hash = [](const std::string& text) { return parse_cluster(text, "x").value().hash; };
  EXPECT_EQ(hash(kCluster), hash("# a comment\n[heartbeat]\ntimeout = \"1000ms\"\n" + std::string(kCluster)));
  EXPECT_NE(hash(kCluster), hash("[heartbeat]\ntimeout = \"2s\"\n" + std::string(kCluster)));
}

TEST(ClusterFile, UnknownKeySaysPlaceAndNearestKey) {
  const Error error = cluster_error(std::string(kCluster) + "[heartbeat]\ntimeuot = \"1s\"\n");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message,
              HasSubstr("cluster.toml:7:1: heartbeat.timeuot is not a known key; did you mean \"timeout\"?"));
  EXPECT_THAT(error.message, HasSubstr("    7 | timeuot = \"1s\"\n      | ^"));
}

TEST(ClusterFile, KeyInTheWrongSectionSaysWhereItBelongs) {
  EXPECT_THAT(cluster_error("[heartbeat]\ncredits = 4\n" + std::string(kCluster)).message,
              HasSubstr("did you mean \"transport.credits\"?"));
}

class ClusterMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ClusterMistake, IsNamed) {
  const Error error = cluster_error(GetParam().text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, ClusterMistake,
    testing::Values(
        Mistake{"Syntax", "[chief\naddress = 3", "cluster.toml:1:7: isn't TOML"},
        Mistake{"DuplicateKey", "[log]\nrate = 1\nrate = 2", "isn't TOML"},
        Mistake{"WrongType", "[transport]\ncredits = \"4\"" + std::string(kCluster),
                "transport.credits is \"4\"; expected an integer from 1 to 64"},
        Mistake{"OutOfRange", "[transport]\ncredits = 65" + std::string(kCluster),
                "transport.credits is 65; expected an integer from 1 to 64"},
        Mistake{"DurationWithoutUnit", "[heartbeat]\ntimeout = 1" + std::string(kCluster),
                "heartbeat.timeout is 1; expected a duration from"},
        Mistake{"DurationOutOfRange", "[heartbeat]\ntimeout = \"2h\"" + std::string(kCluster),
                "expected a duration from \"100ms\" to \"1h\""},
        Mistake{"SizeWithoutUnit", "[[ps]]\naddress = \"a:1\"\nmemory = 100" + std::string(kCluster),
                "ps[0].memory is 100; expected \"auto\", or a size with a unit"},
        Mistake{"SectionIsNotATable", "log = 3\n" + std::string(kCluster), "log is 3; expected a table"},
        Mistake{"ListIsNotAList", "ps = 3\n[[worker]]\naddress = \"a:1\"", "ps is 3; expected a list of [[sections]]"},
        Mistake{"UnknownWord", "[log]\nlevel = \"inof\"" + std::string(kCluster),
                "expected \"debug\", \"info\", \"warn\" or \"error\"; did you mean \"info\"?"},
        Mistake{"AddressWithoutPort", "[chief]\naddress = \"host\"" + std::string(kCluster), "expected an address"},
        Mistake{"PortZero", "[chief]\naddress = \"host:0\"" + std::string(kCluster), "with a port from 1 to 65535"},
        Mistake{"PortTooLarge", "[chief]\naddress = \"host:65536\"" + std::string(kCluster),
                "with a port from 1 to 65535"},
        Mistake{"MissingAddress", "[[ps]]\nshards = 1" + std::string(kCluster), "ps[0].address is missing; expected"},
        Mistake{"NoPs", "[[worker]]\naddress = \"a:1\"", "there is no [[ps]] section; expected at least one"},
        Mistake{"NoWorkers", "[[ps]]\naddress = \"a:1\"", "there is no [[worker]] section; expected at least one"},
        Mistake{"OneAddressTwice", std::string(kCluster) + "[[worker]]\naddress = \"127.0.0.1:7110\"",
                "cluster.toml:7:11: worker[1].address is \"127.0.0.1:7110\", which is already the address of ps[0]"},
        Mistake{"UnknownTransport", "[transport]\nkind = \"quic\"" + std::string(kCluster),
                "transport.kind is \"quic\"; expected \"auto\", \"tcp\", \"shm\" or \"rdma\""},
        Mistake{"LaterDevice", "[[worker]]\naddress = \"a:1\"\ndevice = \"cuda:0\"" + std::string(kCluster),
                "worker[0].device = \"cuda:0\" is not in this version"},
        Mistake{"UnknownDevice", "[[worker]]\naddress = \"a:1\"\ndevice = \"tpu\"" + std::string(kCluster),
                "worker[0].device is \"tpu\"; expected \"cpu\", or \"pjrt:\" and the absolute path of a PJRT plugin"},
        Mistake{"PluginWithoutAFullPath",
                "[[worker]]\naddress = \"a:1\"\ndevice = \"pjrt:plugin.so\"" + std::string(kCluster),
                "worker[0].device is \"pjrt:plugin.so\"; expected \"cpu\", or \"pjrt:\""},
        Mistake{"MetricsWithAPort", "[metrics]\nlisten = \"127.0.0.1:9100\"" + std::string(kCluster),
                "the port is the task's port + 1000"},
        Mistake{"MetricsBeyondTheLastPort", "[chief]\naddress = \"127.0.0.1:64536\"" + std::string(kCluster),
                "chief.address is \"127.0.0.1:64536\", so its metrics port would be 65536 (its own port + 1000), which "
                "doesn't exist; expected a port of at most 64535"},
        Mistake{"MetricsAtAnothersPort", "[chief]\naddress = \"127.0.0.1:6110\"" + std::string(kCluster),
                "where chief serves its metrics"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

TEST(ClusterFile, AllMistakesComeAtOnceInTheOrderOfTheFile) {
  const Error error = cluster_error("[transport]\ncredits = 0\nkidn = \"tcp\"\n[log]\nrate = -1\n");
  const std::size_t first = error.message.find("cluster.toml:2:");
  const std::size_t second = error.message.find("cluster.toml:3:");
  const std::size_t third = error.message.find("cluster.toml:5:");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos) << error.message;
  EXPECT_THAT(error.message, AllOf(HasSubstr("no [[ps]]"), HasSubstr("no [[worker]]")));
}

// A stranger may have written the file, and a job comes over the network. So error messages have a bounded length,
// however many mistakes there are.
TEST(ClusterFile, TwentyThousandWorkersAreRefusedInAFewLines) {
  std::string text = kCluster;
  for (int i = 0; i < 20'000; ++i) text += "[[worker]]\naddress = \"127.0.0.1:" + std::to_string(8000 + i) + "\"\n";
  const Error error = cluster_error(text);
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.message, AllOf(HasSubstr("there are 20001 [[worker]] sections; expected at most 1024"),
                                   HasSubstr("other problems")));
  EXPECT_LT(error.message.size(), 16'000u);
}

TEST(ClusterFile, TooManyPsAreRefused) {
  std::string text = kCluster;
  for (int i = 0; i < 1024; ++i) text += "[[ps]]\naddress = \"127.0.0.1:" + std::to_string(9000 + i) + "\"\n";
  EXPECT_THAT(cluster_error("[metrics]\nlisten = \"\"" + text).message,
              HasSubstr("there are 1025 [[ps]] sections; expected at most 1024"));
}

TEST(ClusterFile, MissingFileIsNoInput) {
  auto cluster = read_cluster("/nowhere/cluster.toml");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(cluster.error().message, HasSubstr("/nowhere/cluster.toml: can't be read: No such file"));
}

TEST(MaxConnections, AreThoseOfTheFile) {
  ClusterConfig cluster;
  cluster.transport.max_connections = 7;
  cluster.workers.resize(100);
  EXPECT_EQ(max_connections_of(cluster, 0), 7U);
  EXPECT_EQ(max_connections_of(cluster, 4), 7U);
}

TEST(MaxConnections, SufficeTwiceForTheClusterIfTheFileNamesNone) {
  ClusterConfig cluster;
  cluster.ps.resize(100);
  cluster.workers.resize(1000);
  EXPECT_EQ(max_connections_of(cluster, 0), 2 * 1100 + 1024U) << "of the chief: all tasks";
  EXPECT_EQ(max_connections_of(cluster, 4), 2 * (4000 + 400) + 1024U) << "of a ps: workers and other shards";
  cluster.allow_unlisted_workers = true;
  EXPECT_EQ(max_connections_of(cluster, 0), 2 * (1024 + 100) + 1024U);
  EXPECT_EQ(max_connections_of(cluster, 1'000'000), 1'000'000U);
}

}  // namespace
}  // namespace disttrain::config
