// A worker's examples per second, computed from its heartbeats.
#include "chiefd/core/example_rate.h"

#include <gtest/gtest.h>

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ExampleRateTest : public testing::Test {
 protected:
  // The worker sends a heartbeat each 100 ms. The count of examples grows at the end of each `step`.
  void work(Duration time, Duration step, std::uint64_t examples_per_step) {
    const Instant begin = now_;
    const std::uint64_t before = examples_;
    while (now_ < begin + time) {
      now_ += milliseconds(100);
      examples_ = before + static_cast<std::uint64_t>((now_ - begin) / step) * examples_per_step;
      rate_.hear(now_, examples_);
    }
  }
  void rest(Duration time) { work(time, seconds(1000), 0); }

  ExampleRate rate_;
  Instant now_{seconds(100)};
  std::uint64_t examples_ = 0;
};

TEST_F(ExampleRateTest, NoRateBeforeTheCountHasGrownTwice) {
  EXPECT_FALSE(rate_.per_second());
  rest(milliseconds(100));
  EXPECT_FALSE(rate_.per_second());
}

TEST_F(ExampleRateTest, SteadyWorkHasItsRate) {
  work(seconds(10), milliseconds(100), 50);
  EXPECT_DOUBLE_EQ(rate_.per_second().value(), 500.0);
}

TEST_F(ExampleRateTest, FollowsAChangeWithinTheWindow) {
  work(seconds(10), milliseconds(100), 50);
  work(ExampleRate::kWindow, milliseconds(100), 10);
  EXPECT_DOUBLE_EQ(rate_.per_second().value(), 100.0);
}

TEST_F(ExampleRateTest, StandsStillAfterTheWindow) {
  work(seconds(10), milliseconds(100), 50);
  rest(seconds(1));
  EXPECT_GT(rate_.per_second().value(), 0.0);
  rest(seconds(4));
  EXPECT_EQ(rate_.per_second(), 0.0);
}

TEST_F(ExampleRateTest, PauseIsNoPartOfTheRateAfterIt) {
  work(seconds(10), milliseconds(100), 50);
  rest(seconds(30));
  work(milliseconds(500), milliseconds(100), 50);
  EXPECT_DOUBLE_EQ(rate_.per_second().value(), 500.0);
}

TEST_F(ExampleRateTest, StepsLongerThanTheWindowHaveTheirRateBetweenThemToo) {
  work(seconds(12), seconds(5), 100);
  ASSERT_TRUE(rate_.per_second());
  for (int i = 0; i < 100; ++i) {
    rest(milliseconds(100));
    if (i == 28) rate_.hear(now_ += milliseconds(100), examples_ += 100);
    EXPECT_NEAR(rate_.per_second().value(), 20.0, 1.0) << i;
  }
}

TEST_F(ExampleRateTest, CountThatFallsBeginsAnew) {
  work(seconds(10), milliseconds(100), 50);
  examples_ = 0;
  rate_.hear(now_ += milliseconds(100), 0);
  EXPECT_FALSE(rate_.per_second());
  work(seconds(1), milliseconds(100), 10);
  EXPECT_DOUBLE_EQ(rate_.per_second().value(), 100.0);
}

TEST_F(ExampleRateTest, HeartbeatsOfOneInstantAreNoDivisionByZero) {
  rate_.hear(now_, 1);
  rate_.hear(now_, 2);
  EXPECT_FALSE(rate_.per_second());
}

}  // namespace
}  // namespace disttrain::chiefd
