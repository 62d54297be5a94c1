// The chief was restarted. The new chief opens the job's checkpoint folder, and keeps to the times of its checkpoints.
#include "tests/chiefd/core/reclaim_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(ReclaimTest, FolderThatCannotBeOpenedIsAskedForAgain) {
  const JobId job = train(with_checkpoints());
  folder_error_ = Error{ErrorCode::kNoInput, "there is no /checkpoints"};
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).checkpoints.failures, 1u) << "none can be begun";
  folder_error_.reset();
  folder_work_.clear();
  pass(seconds(2));
  ASSERT_EQ(folder_work_.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<OpenFolder>(folder_work_.back().work));
}

TEST_F(ReclaimTest, CheckpointIsDueByItsTimeHoweverOftenTheChiefIsRestarted) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  config.checkpoint.every = seconds(10);
  train(config);
  for (int i = 0; i < 3; ++i) {
    pass(seconds(4));
    restart_chief_without({});
  }
  report_pacer(30, 0);
  EXPECT_TRUE(std::any_of(folder_work_.begin(), folder_work_.end(),
                          [](const FolderWork& work) { return std::holds_alternative<BeginAttempt>(work.work); }));
}

TEST_F(ReclaimTest, NextCheckpointIsDueWhereItWas) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  config.checkpoint.every_steps = 20;
  train(config);
  report_pacer(20, 0);
  const auto commits = [this] {
    return std::count_if(folder_work_.begin(), folder_work_.end(),
                         [](const FolderWork& work) { return std::holds_alternative<CommitAttempt>(work.work); });
  };
  ASSERT_EQ(commits(), 1);
  restart_chief_without({});
  report_pacer(39, 0);
  EXPECT_EQ(commits(), 1);
  report_pacer(40, 0);
  EXPECT_EQ(commits(), 2);
}

}  // namespace
}  // namespace disttrain::chiefd
