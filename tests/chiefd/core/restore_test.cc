// Checkpoints and files that a generation begins with, or that its ps tasks can't read.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RecoveryTest, DamagedCheckpointIsSetAsideAndTheOneBeforeTaken) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  ASSERT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/step");
  newest_ = restore_point(10);
  newest_->path = "/checkpoints/a/before";
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kData, "bucket 3 has another checksum"});
  ASSERT_TRUE(std::holds_alternative<SetAside>(folder_work_.back().work));
  EXPECT_EQ(std::get<SetAside>(folder_work_.back().work).path, "/checkpoints/a/step");
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/before");
  EXPECT_NE(event("checkpoint_broken"), "no event of this kind");
}

TEST_F(RecoveryTest, NoCheckpointThatVerifiesFailsTheJobInsteadOfBeginningAnew) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  newest_.reset();
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kData, "bucket 3 has another checksum"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("no checkpoint in /checkpoints/a can be used any more"), std::string::npos)
      << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/step") << "nothing begins at step 0";
}

TEST_F(RecoveryTest, FirstParametersAreThoseThatTheChiefNamedForAllShardsAndGenerations) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  config.checkpoint.init_from = "/checkpoints/other";
  const JobId job = train(config);
  ASSERT_EQ(folder_work_.size(), 1u);
  EXPECT_EQ(std::get<FindInit>(folder_work_.back().work).path, "/checkpoints/other");
  for (const std::uint32_t i : {0u, 1u}) EXPECT_EQ(sent<CreateShards>(ps(i)).back().init_path, "/attempt") << i;
  EXPECT_NE(event("warm_start").find("/attempt"), std::string::npos) << event("warm_start");
  kill(ps(0));
  restart(ps(0));
  ASSERT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().init_path, "/attempt");
  EXPECT_EQ(folder_work_.size(), 1u);
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  hello_again(ps(1));
  restart(ps(0));
  pass(milliseconds(200));
  ASSERT_EQ(generation(job), Generation(3));
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().init_path, "/attempt");
  EXPECT_EQ(std::get<FindInit>(folder_work_.back().work).path, "/attempt") << "it is kept from being removed";
  // The new chief finds a generation in which no task has trained yet. It must name the same file with initial
  // parameters as the chief before it.
  obedient_ = false;
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  ASSERT_EQ(generation(job), Generation(4));
  obedient_ = true;
  restart_chief();
  hello_all();
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (std::size_t i = 1; i < folder_work_.size(); ++i)
    EXPECT_EQ(std::get<FindInit>(folder_work_[i].work).path, "/attempt");
}

TEST_F(RecoveryTest, FirstParametersThatCannotBeReadFailTheJob) {
  start_chief(2, 1);
  hello_all();
  JobConfig config = job_config("a");
  config.checkpoint.init_from = "/checkpoints/other";
  folder_error_ = Error{ErrorCode::kData, "/checkpoints/other/step: its manifest is damaged"};
  const JobId job = submit(config);
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kData);
  EXPECT_NE(status(job).reason.find("checkpoint.init_from: "), std::string::npos) << status(job).reason;
}

TEST_F(RecoveryTest, PsThatCannotReadTheCheckpointTriesAgain) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  obedient_ = true;
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kFailed, "can't read: input/output error"});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(3));
}

TEST_F(RecoveryTest, PsWhoseFolderIsAwayTriesAgainWhereItWasTheRightOneBefore) {
  JobConfig config = with_checkpoints();
  config.job.max_restarts = 2;
  const JobId job = train(config);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  const Generation first = generation(job);
  say(ps(0), TaskFailed{job, first, ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(1));
  ASSERT_EQ(generation(job), first.next());
  say(ps(0), TaskFailed{job, first.next(), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kFailed) << "max_restarts bounds it";
}

TEST_F(RecoveryTest, PsThatSeesAnotherFolderIsReportedAtOnceWhenTheJobIsNew) {
  start_chief(1, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(with_checkpoints());
  obedient_ = true;
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  say(ps(0), TaskFailed{job, Generation(1), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PsWhoseFolderIsAwayTriesAgainUnderANewChiefToo) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(with_checkpoints());
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  ASSERT_EQ(generation(job), Generation(1)) << "begun, and not in training yet";
  restart_chief();
  hello(ps(0));
  hello(worker(0));
  pass(seconds(2));
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  ASSERT_EQ(generation(job), Generation(2));
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
}

TEST_F(RecoveryTest, CheckpointOfOtherDataIsRefused) {
  newest_ = restore_point(20);
  newest_->records = 999;
  start_chief(2, 1);
  hello_all();
  const JobId job = submit(with_checkpoints());
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("999 training records"), std::string::npos) << status(job).reason;
}

// With data.sharding = "none" a checkpoint has a number of batches for each worker, with "lease" a ledger of records.
TEST_F(RecoveryTest, CheckpointWhoseAccountOfTheRecordsDoesntFitTheJobIsRefused) {
  const auto reason_with = [this](Sharding sharding, std::optional<std::uint64_t> own_batch) {
    newest_ = restore_point(20);
    newest_->own_batch = own_batch;
    journal_ = {};
    start_chief(2, 1);
    hello_all();
    JobConfig config = with_checkpoints();
    config.data.sharding = sharding;
    const JobId job = submit(config);
    return status(job).state == JobState::kFailed ? status(job).reason : "goes on";
  };
  const std::uint64_t batch = with_checkpoints().train.step_records();
  EXPECT_EQ(reason_with(Sharding::kLease, 0), "goes on");
  EXPECT_EQ(reason_with(Sharding::kNone, batch), "goes on");
  EXPECT_EQ(reason_with(Sharding::kNone, std::nullopt), "goes on") << "an earlier version has made the checkpoint";
  EXPECT_NE(reason_with(Sharding::kNone, 0).find("set data.sharding = \"lease\" again"), std::string::npos);
  EXPECT_NE(reason_with(Sharding::kLease, batch).find("set data.sharding = \"none\" again"), std::string::npos);
  EXPECT_NE(reason_with(Sharding::kNone, batch + 1).find("set train.batch_size and train.accumulate back"),
            std::string::npos);
}

// In sync the step alone says where each worker is in its own order.
TEST_F(RecoveryTest, CheckpointOfWorkersAtDifferentBatchesIsRefusedInSync) {
  const auto state_with = [this](Mode mode, Step of_other) {
    newest_ = restore_point(20);
    newest_->batches = {{worker(0), newest_->step}, {worker(1), of_other}};
    journal_ = {};
    start_chief(2, 1);
    hello_all();
    JobConfig config = with_checkpoints();
    config.data.sharding = Sharding::kNone;
    config.train.mode = mode;
    return status(submit(config));
  };
  EXPECT_NE(state_with(Mode::kSync, Step(20)).state, JobState::kFailed);
  EXPECT_NE(state_with(Mode::kAsync, Step(7)).state, JobState::kFailed);
  const JobStatus refused = state_with(Mode::kSync, Step(7));
  EXPECT_EQ(refused.state, JobState::kFailed);
  EXPECT_NE(refused.reason.find("set train.mode back"), std::string::npos) << refused.reason;
}

}  // namespace
}  // namespace disttrain::chiefd
