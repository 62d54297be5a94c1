#include "common/daemon/release_deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace disttrain::daemon {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::StartsWith;

// A thread that runs its orders when the test lets it.
class ReleaseDeadlineTest : public testing::Test {
 protected:
  ReleaseDeadline::Thread thread() {
    return {.post = [this](std::function<void()> order) { orders_.push_back(std::move(order)); },
            .turns = [this] { return moves_ ? ++turns_ : turns_; },
            .now = [this] { return daemon::now() + skew_; }};
  }
  void obey_all() {
    for (const auto& order : std::exchange(orders_, {})) order();
  }

  asio::io_context loop_;
  std::vector<std::function<void()>> orders_;
  bool moves_ = false;
  std::uint64_t turns_ = 0;
  Duration skew_{};
  int missed_ = 0;
  std::string what_;
  const std::function<void(const std::string&)> on_missed_ = [this](const std::string& what) {
    ++missed_;
    what_ = what;
    loop_.stop();
  };
  ReleaseDeadline deadline_{loop_, thread(), on_missed_};
};

TEST_F(ReleaseDeadlineTest, ThreadThatStandsStillMissesIt) {
  deadline_.begin(milliseconds(10));
  loop_.run();
  EXPECT_EQ(missed_, 1);
  EXPECT_THAT(what_, StartsWith("hasn't moved for "));
}

TEST_F(ReleaseDeadlineTest, ThreadThatObeysDoesNot) {
  deadline_.begin(hours(1));
  EXPECT_TRUE(deadline_.is_pending());
  obey_all();
  loop_.run();  // returns, because no timer is left
  EXPECT_FALSE(deadline_.is_pending());
  EXPECT_EQ(missed_, 0);
}

TEST_F(ReleaseDeadlineTest, ThreadThatMovesGetsMoreTime) {
  moves_ = true;
  deadline_.begin(milliseconds(8));
  for (int turns = 0; turns < 50; ++turns) loop_.run_one();  // each is a check, and the patience is over after eight
  EXPECT_EQ(missed_, 0);
  moves_ = false;
  loop_.run();
  EXPECT_EQ(missed_, 1);
}

TEST_F(ReleaseDeadlineTest, ThreadThatOnlyMovesMissesTheLongestRelease) {
  moves_ = true;
  ReleaseDeadline deadline(loop_, thread(), on_missed_, milliseconds(20));
  deadline.begin(milliseconds(10));
  loop_.run();
  EXPECT_EQ(missed_, 1);
  EXPECT_EQ(what_, "moves, but hasn't released it within 20 ms");
}

TEST_F(ReleaseDeadlineTest, ShorterPatienceHoldsForAnEarlierReleaseToo) {
  deadline_.begin(hours(1));
  deadline_.begin(milliseconds(10));
  loop_.run();
  EXPECT_EQ(missed_, 1);
}

TEST_F(ReleaseDeadlineTest, ShorterPatienceBeginsWithItsOwnRelease) {
  deadline_.begin(hours(1));
  skew_ = milliseconds(20);  // longer than the patience that follows
  deadline_.begin(milliseconds(10));
  EXPECT_EQ(missed_, 0) << "the thread hasn't had its 10 ms yet";
  loop_.run();
  EXPECT_EQ(missed_, 1);
}

TEST_F(ReleaseDeadlineTest, ProcessThatWasSuspendedIsNotHung) {
  deadline_.begin(milliseconds(10));
  skew_ = milliseconds(20);  // the whole process stands still, as after SIGSTOP
  loop_.run_one();           // the check that was due meanwhile
  EXPECT_EQ(missed_, 0) << "the thread had no time either";
  obey_all();
  loop_.run();
  EXPECT_EQ(missed_, 0);
}

TEST_F(ReleaseDeadlineTest, EachReleaseMustBeOver) {
  deadline_.begin(hours(1));
  obey_all();
  deadline_.begin(milliseconds(10));
  loop_.run();
  EXPECT_EQ(missed_, 1) << "only the first release is over";
}

TEST_F(ReleaseDeadlineTest, OrderThatRunsAfterItsEndDoesNothing) {
  {
    ReleaseDeadline gone(loop_, thread(), [this](const std::string&) { ++missed_; });
    gone.begin(milliseconds(1));
  }
  obey_all();
  loop_.run();
  EXPECT_EQ(missed_, 0);
}

}  // namespace
}  // namespace disttrain::daemon
