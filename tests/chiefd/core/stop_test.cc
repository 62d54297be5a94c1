// When a client stops a job, the job saves its parameters, whichever stage it is in.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class StopTest : public RecoveryTest {
 protected:
  // Starts a job with one epoch, all of whose records are lent. When the worker finishes, the job finishes too.
  JobId train_one() {
    JobConfig config = with_checkpoints();
    config.job.shards = 2;
    const JobId job = train(config, 1);
    lend_all(job);
    report_pacer(7, 1);
    return job;
  }
  void stop() { step(chiefd::Stop{ClientId(2), "", false, "ada"}); }
  void everybody_says_hello_again() {
    for (const TaskId task : {ps(0), ps(1), worker(0)}) hello_again(task);
  }
  std::size_t commits() const {
    return static_cast<std::size_t>(std::count_if(folder_work_.begin(), folder_work_.end(), [](const FolderWork& work) {
      return std::holds_alternative<CommitAttempt>(work.work);
    }));
  }
};

TEST_F(StopTest, NewChiefThatWaitsForItsTasksStopsThemWhenTheyAreThere) {
  const JobId job = train_one();
  restart_chief();
  stop();
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
  everybody_says_hello_again();
  ASSERT_GE(sent<StopJob>(worker(0)).size(), 1u);
  finish(job, worker(0));
  EXPECT_EQ(commits(), 1u);
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
  EXPECT_EQ(status(job).reason, "stopped by ada");
}

TEST_F(StopTest, NoWorkerStopsBeforeTheStopIsDurable) {
  const JobId job = train_one();
  disk_is_held_ = true;
  stop();
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
  hello_again(worker(0));
  EXPECT_TRUE(sent<StopJob>(worker(0)).empty()) << "a chief that is restarted now would go on with the job";
  release_disk();
  ASSERT_GE(sent<StopJob>(worker(0)).size(), 1u);
  finish(job, worker(0));
  EXPECT_EQ(status(job).reason, "stopped by ada");
}

TEST_F(StopTest, NoWorkerStopsBeforeTheStopOfARestartedChiefIsDurable) {
  train_one();
  restart_chief();
  pass(seconds(1));
  disk_is_held_ = true;
  stop();
  everybody_says_hello_again();
  pass(seconds(1));
  EXPECT_TRUE(sent<StopJob>(worker(0)).empty());
  release_disk();
  EXPECT_GE(sent<StopJob>(worker(0)).size(), 1u);
}

TEST_F(StopTest, ThePacerIsToldThatNoStepMayFollow) {
  const JobId job = train_one();
  stop();
  EXPECT_FALSE(sent<SetRoster>(ps(0)).back().ends) << "the worker ends its step first";
  obedient_ = false;
  finish(job, worker(0));
  EXPECT_TRUE(sent<SetRoster>(ps(0)).back().ends);
  const std::size_t orders = sent<SetRoster>(ps(0)).size();
  hello_again(ps(0));
  ASSERT_EQ(sent<SetRoster>(ps(0)).size(), orders + 1);
  EXPECT_TRUE(sent<SetRoster>(ps(0)).back().ends) << "the first order may be lost";
  kill(worker(0));
  EXPECT_TRUE(sent<SetRoster>(ps(0)).back().ends);
}

TEST_F(StopTest, WithoutAStopStepsMayFollow) {
  const JobId job = train_one();
  finish(job, worker(0));
  for (const SetRoster& order : sent<SetRoster>(ps(0))) EXPECT_FALSE(order.ends);
}

TEST_F(StopTest, LastCheckpointThatIsUnderWayIsTaken) {
  const JobId job = train_one();
  folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
  finish(job, worker(0));
  stop();
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
  EXPECT_EQ(commits(), 0u);
  folder_error_.reset();
  pass(seconds(2));
  EXPECT_EQ(commits(), 1u);
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
}

// A worker gives the shards their first values. The only worker was lost before that.
TEST_F(StopTest, JobThatHasMadeNoStepTakesNoCheckpoint) {
  const JobId job = train(with_checkpoints(), 1);
  kill(worker(0));
  stop();
  pass(seconds(1));
  EXPECT_EQ(commits(), 0u);
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
}

TEST_F(StopTest, IsNotForgottenByTheNextChiefThoughAPsWasSilent) {
  const JobId job = train_one();
  stop();
  silence(ps(1));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused) << "nobody answers its pushes";
  const std::size_t told = sent<StopJob>(worker(0)).size();
  hear_again(ps(1));
  restart_chief();
  everybody_says_hello_again();
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
  ASSERT_GT(sent<StopJob>(worker(0)).size(), told);
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
  EXPECT_EQ(status(job).reason, "stopped by ada");
}

TEST_F(StopTest, PsThatReturnsLetsTheWorkersEndTheirSteps) {
  const JobId job = train_one();
  stop();
  silence(ps(1));
  pass(seconds(2));
  hear_again(ps(1));
  pass(seconds(1));
  EXPECT_FALSE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(status(job).state, JobState::kStopping) << status(job).reason;
}

// In sync, a worker that has finished leaves the roster, so that the others can end their step.
TEST_F(StopTest, LastCheckpointNeedsNoWorkerThatHangs) {
  JobConfig config = with_checkpoints(Mode::kSync);
  config.evaluate.files = "t";
  evaluation_records_ = 10;
  const JobId job = train(config);
  report_pacer(7, 0);
  stop();
  finish(job, worker(0));
  pass(config_.heartbeat.timeout + config.job.stall_timeout + seconds(30));
  ASSERT_FALSE(sent<SetRoster>(ps(0)).empty());
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))})
      << "one that lives, for the evaluation";
  EXPECT_EQ(generation(job), Generation(1)) << "it doesn't roll back: " << status(job).reason;
}

// With job.on_worker_loss = "wait" no step is made without the lost worker, which nobody waits for any more.
TEST_F(StopTest, StepsOfTheOthersDontWaitForALostWorker) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  const std::size_t before = sent<SetRoster>(ps(0)).back().roster.members.size();
  kill(worker(1));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), before) << "its rank is kept";
  stop();
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), before - 1);
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0)}) hello_again(task);
  pass(seconds(3));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), before - 1);
}

TEST_F(StopTest, NewChiefDoesNotWaitForEverForAStepThatDoesNotEnd) {
  const JobId job = train_one();
  stop();
  restart_chief();
  everybody_says_hello_again();
  pass(config_.heartbeat.timeout + job_config("a").job.stall_timeout + seconds(30));
  ASSERT_FALSE(sent<PrepareCheckpoint>(ps(0)).empty()) << status(job).reason;
  say_written(sent<PrepareCheckpoint>(ps(0)).back());
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
  EXPECT_EQ(status(job).reason, "stopped by ada");
  EXPECT_EQ(commits(), 1u) << "the last checkpoint is taken without this worker";
}

}  // namespace
}  // namespace disttrain::chiefd
