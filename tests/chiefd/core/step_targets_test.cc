// The number of steps that a job will probably have made at its end.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(TrainingTest, SyncOverWholeSetsTellsThePacerItsNumberOfSteps) {
  JobConfig config = job_config("a", Mode::kSync);
  config.data.sharding = Sharding::kNone;
  config.train.epochs = 3;
  const JobId job = train(config);
  const auto create = std::find_if(sent_.begin(), sent_.end(), [](const Send& message) {
    return std::holds_alternative<CreateShards>(message.message);
  });
  EXPECT_EQ(std::get<CreateShards>(create->message).config->train.steps, 300u);
  EXPECT_EQ(status(job).steps_target, 300u);
}

// The job made steps with one worker. These steps still count when it goes on with two workers.
TEST_F(TrainingTest, TargetCountsStepsThatWereMadeWithOtherWorkers) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 3;
  const JobId job = train(config);
  EXPECT_EQ(status(job).steps_target, 150u);
  report_pacer(160, 1, {EpochLedger{1, {Interval{0, 600}}}});  // with one worker: 100 + 60 steps
  EXPECT_EQ(status(job).steps_target, 160u + 20 + 50);
  report_pacer(230, 3);
  EXPECT_EQ(status(job).steps_target, 230u);
}

TEST_F(TrainingTest, TargetIsNeverBehindTheSteps) {
  JobConfig config = job_config("a");
  config.train.epochs = 0;
  config.train.steps = 100;
  const JobId job = train(config);
  report_pacer(103, 0);
  EXPECT_EQ(status(job).steps_target, 103u);
}

TEST_F(TrainingTest, TargetOfWholeSetsShrinksWithALostWorker) {
  JobConfig config = job_config("a");
  config.data.sharding = Sharding::kNone;
  const JobId job = train(config);
  EXPECT_EQ(status(job).steps_target, 200u);
  heartbeats_[worker(0)].steps = 30;
  pass(seconds(1));
  kill(worker(0));
  EXPECT_EQ(status(job).steps_target, 130u);
}

}  // namespace
}  // namespace disttrain::chiefd
