#include "chiefd/core/job/facts/progress.h"

#include <gtest/gtest.h>

#include "common/bounds.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class ProgressTest : public testing::Test {
 protected:
  void report(std::uint64_t step, Duration training) {
    PacerReport report;
    report.global_step = Step(step);
    report.training = training;
    progress_.note(Instant(), report, Step());
  }
  void evaluate(Duration took) {
    Evaluated evaluated;
    evaluated.stalled_training = true;
    evaluated.took = took;
    progress_.note_stalled(evaluated);
  }
  Duration training() const { return progress_.training().time; }

  Progress progress_;
};

TEST_F(ProgressTest, TimeOfTrainingIsWithoutEvaluationsThatAllWaitedFor) {
  report(10, seconds(1));
  evaluate(seconds(30));
  EXPECT_EQ(training(), seconds(1)) << "the pacer's time ends with the newest step";
  report(11, seconds(32));
  EXPECT_EQ(training(), seconds(2));
  EXPECT_EQ(progress_.training_seconds(), 2.0);
}

// The journal refuses a negative time.
TEST_F(ProgressTest, EvaluationThatNoStepFollowsTakesNothingAway) {
  report(10, seconds(1));
  evaluate(seconds(30));
  progress_.drop_generation();
  EXPECT_EQ(training(), seconds(1));
  report(1, seconds(5));
  EXPECT_EQ(training(), seconds(6));
}

TEST_F(ProgressTest, EvaluationInTheWarmUpTakesNothingAway) {
  report(10, Duration());
  evaluate(seconds(30));
  report(11, Duration());
  report(12, seconds(1));
  EXPECT_EQ(training(), seconds(1));
}

// Peers report these times. The journal refuses a time above kMaxDuration.
TEST_F(ProgressTest, LongestTimesAddUpToNoMore) {
  report(10, kMaxDuration);
  for (int i = 0; i < 40; ++i) evaluate(kMaxDuration);
  EXPECT_EQ(training(), kMaxDuration);
  report(11, kMaxDuration);
  EXPECT_EQ(training(), kMaxDuration) << "the pacer's time hasn't grown";
  progress_.drop_generation();
  report(1, kMaxDuration);
  EXPECT_EQ(training(), kMaxDuration);
  progress_.drop_generation();
  EXPECT_EQ(progress_.before().time, kMaxDuration);
}

}  // namespace
}  // namespace disttrain::chiefd
