// Losses that roll the job back are counted, and too many of them fail the job.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(RecoveryTest, MoreLossesThanMaxRestartsFailTheJobWithTheRootCause) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 3;
  const JobId job = train(config);
  for (int loss = 1; loss <= 3; ++loss) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(15));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
  EXPECT_NE(status(job).reason.find("max_restarts is 3"), std::string::npos) << status(job).reason;
}

TEST_F(RecoveryTest, LossesUnderFormerChiefsCount) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 3;
  const JobId job = train(config);
  for (int loss = 1; loss <= 3; ++loss) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(15));
    restart_chief();
    for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, LossesBeforeTheWindowDoNotCountUnderAnyChief) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(31));
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
}

TEST_F(RecoveryTest, WallClockThatIsSetBackMakesNoOldLossNew) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(31));
  wall_set_by_ = -seconds(600);
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
}

TEST_F(RecoveryTest, WallClockThatIsSetBackHidesNoNewLoss) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(15));
  wall_set_by_ = -seconds(600);
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
}

}  // namespace
}  // namespace disttrain::chiefd
