// How the chief divides a job's time among uses such as train, input and stall.
#include "chiefd/core/goodput.h"

#include <gtest/gtest.h>

namespace disttrain::chiefd {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 1s;

class GoodputTest : public testing::Test {
 protected:
  GoodputTest() {
    TaskStatus worker;
    worker.task = TaskId{Role::kWorker, 0};
    worker.state = TaskState::kRunning;
    worker.figures.phase_times.resize(kPhases);
    status_.tasks.push_back(worker);
    status_.state = JobState::kRunning;
    goodput_.look(now_, status_, kPatience);
  }

  // Lets time pass. `part`: the job's activity meanwhile, such as training.
  void pass(Duration time, JobPart part) {
    status_.part = part;
    now_ += time;
    goodput_.look(now_, status_, kPatience);
  }
  void spend(Phase phase, Duration time, std::size_t worker = 0) {
    status_.tasks.at(worker).figures.phase_times[static_cast<std::size_t>(phase)] += time;
  }
  Duration all() const {
    Duration sum{};
    for (std::size_t i = 0; i < kUses; ++i) sum += goodput_.of(static_cast<Use>(i));
    return sum;
  }

  Instant now_{};
  JobStatus status_;
  Goodput goodput_;
};

TEST_F(GoodputTest, PartsThatTrainNothingTakeTheirTimeWhole) {
  pass(2s, JobPart::kInit);
  pass(3s, JobPart::kRestore);
  pass(4s, JobPart::kCheckpoint);
  pass(5s, JobPart::kEvaluate);
  EXPECT_EQ(goodput_.of(Use::kInit), 2s);
  EXPECT_EQ(goodput_.of(Use::kRestore), 3s);
  EXPECT_EQ(goodput_.of(Use::kCheckpoint), 4s);
  EXPECT_EQ(goodput_.of(Use::kTrain), 5s);
  EXPECT_EQ(all(), 14s);
}

TEST_F(GoodputTest, QueuedAndEndedJobUsesNothing) {
  pass(7s, JobPart::kNone);
  EXPECT_EQ(all(), 0s);
}

TEST_F(GoodputTest, TrainingIsDividedAsTheWorkersSpentTheirTime) {
  status_.tasks.push_back(status_.tasks.front());
  status_.tasks.back().task.index = 1;
  spend(Phase::kCompute, 600ms);
  spend(Phase::kWait, 200ms);
  spend(Phase::kPull, 100ms);
  spend(Phase::kPush, 100ms);
  spend(Phase::kInput, 1s, 1);
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kTrain), 300ms);
  EXPECT_EQ(goodput_.of(Use::kSync), 200ms);
  EXPECT_EQ(goodput_.of(Use::kInput), 500ms);
}

TEST_F(GoodputTest, TimeWaitsForTheNextReport) {
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(all(), 0s);
  spend(Phase::kInput, 10ms);
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kInput), 2s);
  pass(1s, JobPart::kTrain);
  pass(1s, JobPart::kNone);  // the job ends, and no later time counts
  EXPECT_EQ(goodput_.of(Use::kTrain), 1s);
}

TEST_F(GoodputTest, WorkerThatBeginsAnewTakesNothingBack) {
  spend(Phase::kCompute, 10s);
  pass(1s, JobPart::kTrain);
  status_.tasks.front().figures.phase_times.assign(kPhases, Duration::zero());
  spend(Phase::kInput, 1s);
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kTrain), 1s);
  EXPECT_EQ(goodput_.of(Use::kInput), 1s);
}

TEST_F(GoodputTest, PauseIsAStall) {
  status_.state = JobState::kPaused;
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kStall), 1s);
}

TEST_F(GoodputTest, NoStepForLongerThanPatienceIsAStallUnlessSomebodyEvaluates) {
  spend(Phase::kWait, 1s);
  status_.progress_age = kPatience;
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kStall), 0s);
  status_.progress_age = kPatience + 1ns;
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kStall), 1s);
  status_.tasks.front().phase = Phase::kEvaluate;
  spend(Phase::kEvaluate, 1s);
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kStall), 1s);
  EXPECT_EQ(goodput_.of(Use::kTrain), 1s);
}

// 3 s of sync steps: the slower worker computes for 2.6 s, then both exchange for 0.4 s.
TEST_F(GoodputTest, LongStepsAreNoStall) {
  status_.tasks.push_back(status_.tasks.front());
  status_.tasks.back().task.index = 1;
  for (int step = 0; step < 10; ++step)
    for (Duration age = 200ms; age <= 3s; age += 200ms) {
      status_.progress_age = age;
      const auto is_in = [&](Phase phase, std::size_t worker) {
        status_.tasks.at(worker).phase = phase;
        spend(phase, 200ms, worker);
      };
      is_in(age > 600ms ? Phase::kWait : Phase::kCompute, 0);
      is_in(age > 2600ms ? Phase::kPush : Phase::kCompute, 1);
      pass(200ms, JobPart::kTrain);
    }
  EXPECT_EQ(goodput_.of(Use::kStall), 0s);
  EXPECT_EQ(goodput_.of(Use::kTrain) + goodput_.of(Use::kSync), 30s);
  EXPECT_GT(goodput_.of(Use::kTrain), 15s);
}

TEST_F(GoodputTest, SlowInputIsNoStall) {
  status_.progress_age = 1h;
  status_.tasks.front().phase = Phase::kInput;
  spend(Phase::kInput, 1s);
  pass(1s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kInput), 1s);
}

TEST_F(GoodputTest, WorkOfASilentTaskDoesNotHideAStall) {
  status_.progress_age = 1h;
  status_.tasks.front().phase = Phase::kCompute;
  status_.tasks.front().state = TaskState::kSilent;
  pass(2s, JobPart::kTrain);
  EXPECT_EQ(goodput_.of(Use::kStall), 2s);
}

}  // namespace
}  // namespace disttrain::chiefd
