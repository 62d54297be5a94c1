#include "common/daemon/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "common/daemon/random.h"
#include "common/daemon/threads.h"

namespace disttrain::daemon {
namespace {

using testing::HasSubstr;

ClusterConfig cluster_of(const std::vector<std::string>& ps, const std::vector<std::string>& workers) {
  ClusterConfig cluster;
  for (const std::string& address : ps) cluster.ps.emplace_back().address = address;
  for (const std::string& address : workers) cluster.workers.emplace_back().address = address;
  return cluster;
}

TEST(Host, OwnAddressesAreRecognised) {
  EXPECT_TRUE(is_own_address("127.0.0.1:7110").value());
  EXPECT_TRUE(is_own_address("127.3.2.1:7110").value());
  EXPECT_TRUE(is_own_address("localhost:7110").value());
  EXPECT_FALSE(is_own_address("192.0.2.1:7110").value());  // reserved for documentation (RFC 5737)
}

TEST(Host, HostPartDropsPortAndBrackets) {
  EXPECT_EQ(host_part("127.0.0.1:7110"), "127.0.0.1");
  EXPECT_EQ(host_part("[::1]:7110"), "::1");
}

TEST(OwnTask, IndexIsTaken) {
  EXPECT_EQ(find_own_task(cluster_of({"192.0.2.1:1", "192.0.2.2:1"}, {"192.0.2.1:2"}), Role::kPs, 1).value(),
            (TaskId{Role::kPs, 1}));
}

TEST(OwnTask, IndexBeyondTheFileIsRefused) {
  auto task = find_own_task(cluster_of({"192.0.2.1:1"}, {"192.0.2.1:2"}), Role::kWorker, 1);
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code, ErrorCode::kConfig);
  EXPECT_THAT(task.error().message,
              HasSubstr("--index 1: the cluster file has 1 [[worker]] sections; expected 0 to 0"));
}

TEST(OwnTask, OnlyOwnAddressTellsTheIndex) {
  EXPECT_EQ(find_own_task(cluster_of({"192.0.2.1:1", "127.0.0.1:1"}, {}), Role::kPs, std::nullopt).value(),
            (TaskId{Role::kPs, 1}));
}

TEST(OwnTask, NameThatCannotBeResolvedIsNamed) {
  const std::string name = "no-such-host.invalid";  // RFC 6761
  auto task = find_own_task(cluster_of({"192.0.2.1:1", name + ":1"}, {}), Role::kPs, std::nullopt);
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().message, HasSubstr("host name \"" + name + "\" can't be resolved"));
  EXPECT_EQ(find_own_task(cluster_of({name + ":1", "127.0.0.1:1"}, {}), Role::kPs, std::nullopt).value(),
            (TaskId{Role::kPs, 1}))
      << "other hosts may not be up yet";
}

TEST(OwnTask, SeveralOwnAddressesAreRefusedWithTheWayOut) {
  auto task = find_own_task(cluster_of({"127.0.0.1:1", "127.0.0.1:2"}, {}), Role::kPs, std::nullopt);
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code, ErrorCode::kConfig);
  EXPECT_THAT(task.error().message, HasSubstr("(0, 1)"));
  EXPECT_THAT(task.error().message, HasSubstr("psd@N"));
}

TEST(OwnTask, NoOwnAddressIsRefused) {
  auto task = find_own_task(cluster_of({"192.0.2.1:1"}, {}), Role::kPs, std::nullopt);
  ASSERT_FALSE(task);
  EXPECT_THAT(task.error().message, HasSubstr("none of the 1 [[ps]]"));
}

TEST(OwnTask, ChiefIsAlwaysTheFirst) {
  EXPECT_EQ(find_own_task(cluster_of({}, {}), Role::kChief, std::nullopt).value(), (TaskId{Role::kChief, 0}));
}

TEST(InheritedListener, IsTakenOnceByTheProcessItIsFor) {
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(inherited_listener(), "fd:3");
  EXPECT_EQ(inherited_listener(), std::nullopt);
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid() + 1).c_str(), 1);
  EXPECT_EQ(inherited_listener(), std::nullopt);
}

TEST(Threads, CoreThatIsNotThereIsRefused) {
  EXPECT_TRUE(pin_thread({}));
  EXPECT_GE(cores_given(), 1u);
  auto pinned = pin_thread({100'000});
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().code, ErrorCode::kConfig);
}

TEST(Random, NumbersDiffer) {
  EXPECT_NE(draw_incarnation(), draw_incarnation());
}

}  // namespace
}  // namespace disttrain::daemon
