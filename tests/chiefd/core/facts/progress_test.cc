#include "chiefd/core/job/facts/progress.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace disttrain::chiefd
