#include "workerd/core/phase_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace disttrain::workerd {
namespace {

using std::chrono::seconds;

Instant at(int second) {
  return Instant(seconds(second));
}

Duration time_in(const PhaseClock& clock, Phase phase) {
  return clock.progress().times[static_cast<std::size_t>(phase)];
}

TEST(PhaseClock, CountsTheTimeOfEachPhase) {
  PhaseClock clock(at(10));
  EXPECT_EQ(clock.progress().phase, Phase::kIdle);
  EXPECT_TRUE(std::isnan(clock.progress().loss));
  clock.enter(Phase::kPull, at(12));
  clock.enter(Phase::kPull, at(13));
  EXPECT_EQ(clock.progress().since, at(12));
  clock.enter(Phase::kInput, at(15));
  EXPECT_EQ(time_in(clock, Phase::kIdle), seconds(2));
  EXPECT_EQ(time_in(clock, Phase::kPull), seconds(3));
  EXPECT_EQ(time_in(clock, Phase::kInput), seconds(0));
}

TEST(PhaseClock, CountsComputationsThatFollowEachOther) {
  PhaseClock clock(at(0));
  clock.begin_compute(false, at(1));
  clock.end_compute(Duration::zero(), at(4));
  clock.begin_compute(false, at(5));
  clock.end_compute(seconds(2), at(9));
  EXPECT_EQ(clock.progress().phase, Phase::kCompute);
  EXPECT_EQ(time_in(clock, Phase::kCompute), seconds(3 + 1 + 2)) << "with the second between them";
  EXPECT_EQ(time_in(clock, Phase::kWait), seconds(2));
}

// Of the early part only the engine's wait counts as waiting.
TEST(PhaseClock, EarlyComputationWaitsUntilItsParametersAreThere) {
  PhaseClock clock(at(0));
  clock.begin_compute(true, at(0));
  EXPECT_EQ(clock.progress().phase, Phase::kWait);
  clock.note_all_parameters(at(3));
  EXPECT_EQ(clock.progress().phase, Phase::kCompute);
  clock.end_compute(seconds(1), at(5));
  EXPECT_EQ(time_in(clock, Phase::kCompute), seconds(4));
  EXPECT_EQ(time_in(clock, Phase::kWait), seconds(1));
}

TEST(PhaseClock, WaitIsNeverLongerThanItsComputation) {
  PhaseClock clock(at(0));
  clock.begin_compute(false, at(0));
  clock.end_compute(seconds(9), at(2));
  EXPECT_EQ(time_in(clock, Phase::kCompute), seconds(0));
  EXPECT_EQ(time_in(clock, Phase::kWait), seconds(2));
}

}  // namespace
}  // namespace disttrain::workerd
