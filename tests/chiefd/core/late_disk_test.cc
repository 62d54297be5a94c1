// For a while the chief's own disk makes no record durable. The chief must not blame a task for that.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class LateDiskTest : public TrainingTest {
 protected:
  // Starts a job that trains, and then holds the disk. So when a worker asks for a lease, the lease's record doesn't
  // become durable.
  JobId train_and_hold_disk() {
    JobConfig config = job_config("a");
    config.job.stall_timeout = seconds(15);
    const JobId job = train(config);
    disk_is_held_ = true;
    ask(job, worker(0));
    return job;
  }
};

TEST_F(LateDiskTest, NoStallIsCountedWhileARecordIsLate) {
  const JobId job = train_and_hold_disk();
  pass(seconds(60));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_EQ(status(job).reason.find("the chief's own disk has written no record"), 0U) << status(job).reason;
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  release_disk();
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_FALSE(sent<PauseJob>(worker(0)).back().paused);
}

TEST_F(LateDiskTest, AStallAfterwardsIsCountedFromThenOn) {
  const JobId job = train_and_hold_disk();
  pass(seconds(60));
  release_disk();
  pass(seconds(14));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LateDiskTest, ADiskThatStaysAwayFailsTheJobAndNoTask) {
  const JobId job = train_and_hold_disk();
  pass(seconds(130));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).reason.find("the chief's own disk has written no record"), 0U) << status(job).reason;
  EXPECT_FALSE(status(job).root_cause);
}

TEST_F(LateDiskTest, WorkersThatAreBackAtANewChiefArePaused) {
  const JobId job = train(job_config("a"));
  restart_chief();
  disk_is_held_ = true;
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  EXPECT_FALSE(sent<PauseJob>(worker(0)).back().paused);
  pass(seconds(31));
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  release_disk();
  pass(seconds(3));
  EXPECT_FALSE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// A chief listens once its term is durable.
TEST_F(LateDiskTest, TasksThatCannotReachTheChiefYetAreNotLost) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  restart_chief();
  pass(seconds(30));
  release_disk();
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
}

TEST_F(LateDiskTest, NobodyIsToldToCloseBeforeTheJobsEndIsDurable) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kData, "its loss isn't finite"});
  pass(seconds(3));
  EXPECT_EQ(count_sent<CloseJob>(), 0u) << "a later chief would take them for lost";
  EXPECT_NE(status(job).reason.find("the chief's own disk has written no record"), std::string::npos)
      << status(job).reason;
  release_disk();
  EXPECT_EQ(count_sent<CloseJob>(), 3u);
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LateDiskTest, TasksAreToldToCloseThoughTheDiskHangsForTooLong) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kData, "its loss isn't finite"});
  pass(seconds(130));
  EXPECT_EQ(count_sent<CloseJob>(), 3u);
  release_disk();
  EXPECT_EQ(count_sent<CloseJob>(), 3u);
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LateDiskTest, SecondKillIsAnsweredWhenTheFirstOneIsDurable) {
  train(job_config("a"));
  disk_is_held_ = true;
  for (const std::uint64_t client : {1, 2}) step(Stop{ClientId(client), "a", true, "ada"});
  EXPECT_EQ(requests_done_, 0u) << "a chief that dies now leaves a job that goes on";
  release_disk();
  EXPECT_EQ(requests_done_, 2u);
}

TEST_F(LateDiskTest, PsDoesNotLeaveBeforeTheJobsEndIsDurable) {
  train(job_config("a"));
  disk_is_held_ = true;
  step(Stop{ClientId(1), "a", true, "ada"});
  say(ps(0), LeaveRequest{});
  EXPECT_EQ(count_sent<LeaveGranted>(), 0u) << "the workers haven't closed yet";
  release_disk();
  EXPECT_EQ(count_sent<LeaveGranted>(), 1u);
}

}  // namespace
}  // namespace disttrain::chiefd
