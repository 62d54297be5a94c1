// The chief's own disk takes no records for a while. Nobody else is to blame for that.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class LateDiskTest : public TrainingTest {
 protected:
  // Trains, then lends what the disk doesn't take.
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
  EXPECT_EQ(status(job).reason.find("the chief's own disk has taken no record"), 0U) << status(job).reason;
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
  EXPECT_EQ(status(job).reason.find("the chief's own disk has taken no record"), 0U) << status(job).reason;
  EXPECT_FALSE(status(job).root_cause);
}

}  // namespace
}  // namespace disttrain::chiefd
