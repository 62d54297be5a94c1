#include "common/daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/reader/reader.h"

namespace disttrain::daemon {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

const char kFile[] = "[[ps]]\naddress = \"a:1\"\n[[worker]]\naddress = \"a:2\"\n";

ClusterConfig cluster(const std::string& more = "") {
  auto read = config::parse_cluster(kFile + more, "cluster.toml");
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

TEST(Reload, LevelRateAndHeartbeatAreTaken) {
  const Reload reload =
      compare(cluster(), cluster("[heartbeat]\ntimeout = \"3s\"\n[log]\nlevel = \"debug\"\nrate = 7\n"));
  EXPECT_EQ(reload.cluster.log.level, "debug");
  EXPECT_EQ(reload.cluster.log.rate, 7u);
  EXPECT_EQ(reload.cluster.heartbeat.timeout, seconds(3));
  EXPECT_THAT(reload.taken, ElementsAre("heartbeat.timeout is \"3s\" now, was \"1s\"",
                                        "log.level is \"debug\" now, was \"info\"", "log.rate is 7 now, was 100"));
  EXPECT_THAT(reload.waiting, ElementsAre());
}

TEST(Reload, AllElseStaysAndIsNamed) {
  const Reload reload = compare(
      cluster(), cluster("cores = [1]\n[[worker]]\naddress = \"b:2\"\n[transport]\ncredits = 8\n[log]\nrate = 7\n"));
  EXPECT_EQ(reload.cluster.transport.credits, 4u);
  EXPECT_EQ(reload.cluster.workers.size(), 1u);
  EXPECT_THAT(reload.taken, ElementsAre("log.rate is 7 now, was 100"));
  EXPECT_THAT(reload.waiting,
              ElementsAre("worker[0].cores is [1] now, was []", "worker[1].address is \"b:2\" now, was nothing",
                          "worker[1].threads is 1 now, was nothing", "worker[1].cores is [] now, was nothing",
                          "worker[1].device is \"cpu\" now, was nothing", "transport.credits is 8 now, was 4"));
}

TEST(Reload, WhatIsGoneIsNamedToo) {
  const Reload reload = compare(cluster("[[worker]]\naddress = \"b:2\"\n"), cluster());
  EXPECT_EQ(reload.waiting.size(), 4u);
  EXPECT_EQ(reload.waiting.front(), "worker[1].address is gone, was \"b:2\"");
}

TEST(Reload, HashIsOfWhatHoldsNow) {
  const ClusterConfig before = cluster();
  const ClusterConfig quiet = cluster("[log]\nlevel = \"warn\"\n");
  EXPECT_EQ(compare(before, before).cluster.hash, before.hash);
  EXPECT_EQ(compare(before, quiet).cluster.hash, quiet.hash);
  EXPECT_EQ(compare(before, cluster("[transport]\ncredits = 8\n")).cluster.hash, before.hash);
}

TEST(Reload, WorkerThatTheFileDoesNotNameIsNotInItsHash) {
  ClusterConfig running = cluster();
  running.workers.emplace_back().address = "c:2";
  running.unlisted = 1;
  EXPECT_EQ(compare(running, running).cluster.hash, cluster().hash);
}

}  // namespace
}  // namespace disttrain::daemon
