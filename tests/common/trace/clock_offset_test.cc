#include "common/trace/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace disttrain {
namespace {

using namespace std::chrono_literals;

Instant at(Duration time) {
  return Instant(1h + time);
}

TEST(ClockEstimate, KnowsNothingBeforeTheFirstAnswer) {
  EXPECT_FALSE(ClockEstimate().best(at(0s)));
}

TEST(ClockEstimate, IsTheMiddleOfTheRoundTrip) {
  ClockEstimate clock;
  clock.hear(at(0s), at(5min), at(2ms));
  EXPECT_EQ(clock.best(at(2ms)), (ClockOffset{5min - 1ms, 1ms}));
}

TEST(ClockEstimate, TheShortestRoundTripCounts) {
  ClockEstimate clock;
  clock.hear(at(0ms), at(0ms) - 5min, at(8ms));
  clock.hear(at(10ms), at(10ms) - 5min, at(10ms + 20us));
  clock.hear(at(20ms), at(23ms) - 5min, at(24ms));
  const ClockOffset best = clock.best(at(24ms)).value();
  EXPECT_EQ(best.offset, -5min - 10us);
  EXPECT_GE(best.uncertainty, 10us);
  EXPECT_LT(best.uncertainty, 13us) << "the half round trip, and the drift of 14 ms";
}

TEST(ClockEstimate, AnOldAnswerKnowsLess) {
  ClockEstimate clock;
  clock.hear(at(0s), at(5min), at(0s + 2us));
  clock.hear(at(5s), at(5s + 5min), at(5s + 100us));
  EXPECT_EQ(clock.best(at(5s))->uncertainty, 50us) << "the drift of the first answer is 500 us by now";
}

TEST(ClockEstimate, OneClockHasTheOffsetZero) {
  ClockEstimate clock;
  clock.hear(at(0s), at(70us), at(100us));
  EXPECT_EQ(clock.best(at(100us)), (ClockOffset{0s, 70us})) << "the middle is 20 us off, within 50 us";
}

TEST(ClockEstimate, AnswerThatArrivesBeforeItsHeartbeatIsIgnored) {
  ClockEstimate clock;
  clock.hear(at(1s), at(5min), at(0s));
  EXPECT_FALSE(clock.best(at(2s)));
}

TEST(ClockEstimate, AnotherChiefHasAnotherClock) {
  ClockEstimate clock;
  clock.hear(at(0s), at(5min), at(2ms));
  clock.forget();
  EXPECT_FALSE(clock.best(at(2ms)));
  clock.hear(at(1s), at(1s + 7min), at(1s + 10ms));
  EXPECT_EQ(clock.best(at(1s + 10ms))->offset, 7min - 5ms);
}

// Two clocks drift apart, and messages take random times in both directions.
TEST(ClockEstimate, TheTruthLiesWithinTheUncertainty) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> delay(10'000, 3'000'000);
  std::uniform_int_distribution<std::int64_t> rate(-ClockEstimate::kDrift, ClockEstimate::kDrift);
  for (int round = 0; round < 100; ++round) {
    const Duration offset(delay(random) * (round % 2 == 0 ? 1 : -1));
    const std::int64_t drift = rate(random);  // nanoseconds per second
    const auto chief = [&](Instant task) {
      const Duration since = task - at(0s);
      return task + offset + Duration(since.count() / 1'000'000 * drift / 1'000);
    };
    ClockEstimate clock;
    for (int beat = 0; beat < 200; ++beat) {
      const Instant sent = at(beat * 100ms);
      const Instant heard = sent + Duration(delay(random));
      const Instant arrived = heard + Duration(delay(random));
      clock.hear(sent, chief(heard), arrived);
      const ClockOffset best = clock.best(arrived).value();
      const Duration truth = chief(arrived) - arrived;
      EXPECT_LE(std::chrono::abs(best.offset - truth), best.uncertainty + 1us) << "beat " << beat;
    }
  }
}

}  // namespace
}  // namespace disttrain
