// Virtual time and virtual links: when work runs, and when messages arrive.
#include "scale/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace disttrain::scale {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;

class NetworkTest : public testing::Test {
 protected:
  // 1 byte per microsecond, 100 us.
  NetworkTest() : network_(queue_, LinkSpeed{1e6, microseconds(100)}) {
    for (std::uint32_t i = 0; i < 3; ++i) hosts_.push_back(network_.add_host(TaskId{Role::kWorker, i}));
  }

  void send(int from, int to, std::uint64_t bytes, const std::string& name, Traffic traffic = Traffic::kData) {
    network_.send(hosts_[static_cast<std::size_t>(from)], hosts_[static_cast<std::size_t>(to)], traffic, bytes,
                  [this, name] { arrived_.push_back(name + " " + std::to_string(microseconds_now())); });
  }
  std::int64_t microseconds_now() const {
    return std::chrono::duration_cast<microseconds>(queue_.now() - Instant()).count();
  }
  const std::vector<std::string>& run() {
    while (queue_.turn(Instant::max())) {
    }
    return arrived_;
  }

  EventQueue queue_{Instant()};
  Network network_;
  std::vector<HostId> hosts_;
  std::vector<std::string> arrived_;
};

TEST_F(NetworkTest, LoneMessageTakesLatencyAndItsBytes) {
  send(0, 1, 50, "a");
  EXPECT_THAT(run(), ElementsAre("a 150"));
}

TEST_F(NetworkTest, MessagesOfOneSenderAreSentOneAfterTheOther) {
  send(0, 1, 50, "a");
  send(0, 2, 30, "b");
  EXPECT_THAT(run(), ElementsAre("a 150", "b 180"));
}

TEST_F(NetworkTest, MessagesToOneReceiverAreReceivedOneAfterTheOther) {
  send(0, 2, 50, "a");
  send(1, 2, 30, "b");
  EXPECT_THAT(run(), ElementsAre("a 150", "b 180"));
}

TEST_F(NetworkTest, CardSendsAndReceivesAtTheSameTime) {
  send(0, 1, 50, "there");
  send(1, 0, 50, "back");
  EXPECT_THAT(run(), ElementsAre("there 150", "back 150"));
}

TEST_F(NetworkTest, SmallMessagesOfOtherConnectionsOvertakeDataAndDelayIt) {
  send(0, 1, 50, "first");
  send(0, 1, 1000, "data");
  send(0, 1, 10, "control", Traffic::kControl);
  send(0, 1, 5, "peer", Traffic::kPeer);
  send(0, 1, 20, "last");
  EXPECT_THAT(run(), ElementsAre("control 110", "peer 115", "first 150", "data 1165", "last 1185"));
}

TEST_F(NetworkTest, HostReachesItselfAtOnceAndUncounted) {
  send(0, 0, 1000, "a");
  EXPECT_THAT(run(), ElementsAre("a 0"));
  EXPECT_EQ(network_.cards()[0].out.total(), Carried());
}

TEST_F(NetworkTest, CountsBytesAndMessagesAtBothEnds) {
  send(0, 1, 50, "a");
  send(0, 1, 30, "b", Traffic::kControl);
  run();
  EXPECT_EQ(network_.cards()[0].out.total(), (Carried{80, 2}));
  EXPECT_EQ(network_.cards()[1].in.total(), (Carried{80, 2}));
  EXPECT_EQ(network_.cards()[1].in.carried[static_cast<std::size_t>(Traffic::kControl)], (Carried{30, 1}));
  EXPECT_EQ(network_.cards()[1].out.total(), Carried());
}

TEST(EventQueue, RunsWorkByTimeAndThenInTheOrderOfItsAddition) {
  EventQueue queue{Instant()};
  std::string ran;
  queue.after(microseconds(2), [&] { ran += "c"; });
  queue.after(microseconds(1), [&] {
    ran += "a";
    queue.after(Duration(), [&] { ran += "b"; });
  });
  queue.after(microseconds(2), [&] { ran += "d"; });
  EXPECT_EQ(queue.size(), 3U);
  while (queue.turn(Instant() + microseconds(2))) {
  }
  EXPECT_EQ(ran, "abcd");
  EXPECT_EQ(queue.turns(), 4U);
  EXPECT_EQ(queue.now(), Instant() + microseconds(2));
}

TEST(EventQueue, LeavesLaterWork) {
  EventQueue queue{Instant()};
  queue.after(microseconds(2), [] {});
  EXPECT_FALSE(queue.turn(Instant() + microseconds(1)));
  EXPECT_EQ(queue.now(), Instant());
}

}  // namespace
}  // namespace disttrain::scale
