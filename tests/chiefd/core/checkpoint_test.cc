// How the chief takes the checkpoints of a job.
#include <numeric>

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class CheckpointTest : public TrainingTest {
 protected:
  static JobConfig every(std::uint64_t steps, Mode mode = Mode::kAsync) {
    JobConfig config = job_config("a", mode);
    config.job.shards = 2;
    config.checkpoint.directory = "/checkpoints";
    config.checkpoint.every_steps = steps;
    return config;
  }
  JobId finish_on_a_full_disk() {
    const JobId job = train(every(0), 1);
    lend_all(job);
    report_pacer(7, 1);
    folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
    finish(job, worker(0));
    return job;
  }
  template <typename Work>
  std::size_t count_work() const {
    return static_cast<std::size_t>(std::count_if(folder_work_.begin(), folder_work_.end(), [](const FolderWork& work) {
      return std::holds_alternative<Work>(work.work);
    }));
  }
};

TEST_F(CheckpointTest, IsTakenAtTheFirstReportPastEachMultiple) {
  const JobId job = train(every(100));
  report_pacer(99, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 0u);
  report_pacer(103, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
  report_pacer(150, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
  report_pacer(200, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 2u);
  EXPECT_EQ(status(job).checkpoint, journal_.jobs[job].checkpoint->path);
}

TEST_F(CheckpointTest, StagesOfEachCheckpointAreTimed) {
  const JobId job = train(every(100));
  EXPECT_FALSE(status(job).checkpoints.age);
  report_pacer(103, 0);
  report_pacer(200, 0);
  const auto counted = [](const SecondsHistogram& histogram) {
    return std::accumulate(histogram.counts().begin(), histogram.counts().end(), std::uint64_t{0});
  };
  const CheckpointFigures figures = status(job).checkpoints;
  for (const auto* op : {&figures.cut, &figures.park, &figures.write, &figures.commit}) EXPECT_EQ(counted(*op), 2u);
  EXPECT_EQ(counted(figures.restore), 0u);
  EXPECT_EQ(figures.failures, 0u);
  EXPECT_EQ(figures.age, Duration::zero());
}

TEST_F(CheckpointTest, EveryPsHasRoomBeforeAnybodyMarksOrCuts) {
  train(every(100));
  obedient_ = false;
  report_pacer(100, 0);
  ASSERT_EQ(sent<PrepareCheckpoint>(ps(0)).size(), 1u);
  ASSERT_EQ(sent<PrepareCheckpoint>(ps(1)).size(), 1u);
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  const CheckpointPrepared prepared{prepare.job, prepare.generation, prepare.attempt};
  say(ps(0), prepared);
  say(ps(0), prepared);
  EXPECT_EQ(count_sent<MarkChannels>(), 0u);
  say(ps(1), prepared);
  EXPECT_EQ(count_sent<MarkChannels>(), 2u);
}

// A joining worker has no open channels yet, so it can't send marks. If the attempt counted on this worker, the shards
// would wait for its marks.
TEST_F(CheckpointTest, WorkerThatBeginsToJoinMeanwhileIsAskedToMarkWhenItHasOpened) {
  const JobId job = train(every(100));
  kill(worker(1));
  obedient_ = false;
  report_pacer(100, 0);
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  restart(worker(1));
  say(worker(1), JobDescribed{job, model_, records_, 0});
  ASSERT_EQ(sent<OpenJob>(worker(1)).size(), 2u);
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  EXPECT_EQ(count_sent<MarkChannels>(), 0u);
  say(worker(1), JobOpened{job, Generation(1)});
  pass(seconds(1));
  for (const std::uint32_t i : {0u, 1u}) EXPECT_EQ(sent<MarkChannels>(worker(i)).size(), 1u) << i;
}

TEST_F(CheckpointTest, SyncAsksThePacerForTheStepItself) {
  train(every(100, Mode::kSync));
  report_pacer(100, 0);
  EXPECT_EQ(count_sent<MarkChannels>(), 0u);
  ASSERT_EQ(sent<TakeCut>(ps(0)).size(), 1u);
  EXPECT_EQ(sent<TakeCut>(ps(0)).back().at, Step(100));
}

// In sync, the shards take a cut at a certain step. If no worker is left that can make this step, they must take the
// cut at once, because workers that want to join wait for the cut.
TEST_F(CheckpointTest, SyncCutOfAStepThatNobodyMakesIsTakenAtOnce) {
  const JobId job = train(every(100, Mode::kSync));
  obedient_ = false;
  report_pacer(100, 0);
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  finish(job, worker(0));
  pass(seconds(1));
  ASSERT_EQ(sent<TakeCut>(ps(0)).size(), 1u);
  finish(job, worker(1));
  pass(seconds(1));
  ASSERT_EQ(sent<TakeCut>(ps(0)).size(), 2u);
  EXPECT_EQ(sent<TakeCut>(ps(0)).back().at, Step(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(CheckpointTest, FailedCheckpointIsRetriedWhileTrainingGoesOn) {
  const JobId job = train(every(100));
  folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
  report_pacer(100, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 0u);
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_NE(event("checkpoint_failed").find("no space left"), std::string::npos) << event("checkpoint_failed");
  EXPECT_NE(status(job).reason.find("no checkpoint can be taken: /checkpoints: no space left"), std::string::npos)
      << status(job).reason;
  folder_error_.reset();
  pass(seconds(3));
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
  EXPECT_EQ(status(job).checkpoints.failures, 1u);
}

TEST_F(CheckpointTest, ShardsThatHoldOtherPushesMakeNoCheckpoint) {
  const JobId job = train(every(100));
  obedient_ = false;
  report_pacer(100, 0);
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  for (const std::uint32_t s : {0u, 1u}) {
    ShardWritten written;
    written.job = prepare.job;
    written.generation = prepare.generation;
    written.attempt = prepare.attempt;
    written.shard = ShardId(s);
    written.entry.workers = {WorkerEntry{worker(0), Incarnation(150), Sequence(3), Step(1 + s)},
                             WorkerEntry{worker(1), Incarnation(151), Sequence(3), Step(1)}};
    if (s == 0) written.pacer = pacer_;
    say(ps(s), written);
  }
  EXPECT_EQ(count_work<CommitAttempt>(), 0u);
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(1)).size(), 1u);
  EXPECT_EQ(status(job).checkpoints.failures, 1u);
}

TEST_F(CheckpointTest, AttemptAbandonedForALostPsIsNoFailure) {
  const JobId job = train(every(100));
  obedient_ = false;
  report_pacer(100, 0);
  kill(ps(1));
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(0)).size(), 1u);
  EXPECT_EQ(status(job).checkpoints.failures, 0u);
}

TEST_F(CheckpointTest, AttemptCutShortByTheEndOfItsJobIsNoFailure) {
  const JobId job = train(every(100));
  obedient_ = false;
  report_pacer(100, 0);
  step(Stop{ClientId(1), "a", true, "somebody"});
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(0)).size(), 1u);
  EXPECT_EQ(status(job).checkpoints.failures, 0u);
}

TEST_F(CheckpointTest, NewChiefAbandonsTheAttemptOfTheOldChief) {
  train(every(100));
  obedient_ = false;
  report_pacer(100, 0);
  const std::uint64_t open = sent<PrepareCheckpoint>(ps(0)).back().attempt;
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  for (const std::uint32_t i : {0u, 1u}) {
    ASSERT_EQ(sent<AbandonCheckpoint>(ps(i)).size(), 1u);
    EXPECT_GE(sent<AbandonCheckpoint>(ps(i)).back().attempt, open);
  }
}

// A task loses its connection while an attempt is under way, and connects again. Each phase of an attempt has its test.
class CheckpointReconnectTest : public CheckpointTest {
 protected:
  void begin(Mode mode = Mode::kAsync) {
    job_ = train(every(100, mode));
    obedient_ = false;
    report_pacer(100, 0);
    prepare_ = sent<PrepareCheckpoint>(ps(0)).back();
  }
  void prepared(TaskId task) { say(task, CheckpointPrepared{prepare_.job, prepare_.generation, prepare_.attempt}); }
  void all_prepared() {
    prepared(ps(0));
    prepared(ps(1));
  }
  void written(std::uint32_t shard) {
    ShardWritten written;
    written.job = prepare_.job;
    written.generation = prepare_.generation;
    written.attempt = prepare_.attempt;
    written.shard = ShardId(shard);
    written.entry.version = pacer_.global_step;
    if (shard == 0) written.pacer = pacer_;
    say(sent<CreateShards>(ps(0)).back().owners[shard].ps.task, written);
  }
  void lose_connection(TaskId task) {
    step(ConnectionLost{member(task), "reset"});
    step(ProbeDone{member(task), ProbeOutcome::kAnswered});
  }
  bool is_given_up() const { return count_sent<AbandonCheckpoint>() > 0; }

  JobId job_;
  PrepareCheckpoint prepare_;
};

TEST_F(CheckpointReconnectTest, OrderToPrepareIsRepeatedToAPsThatHasNotAnswered) {
  begin();
  prepared(ps(0));
  sent_.clear();
  hello_again(ps(0));
  EXPECT_TRUE(sent<PrepareCheckpoint>(ps(0)).empty()) << "it has answered";
  hello_again(ps(1));
  ASSERT_EQ(sent<PrepareCheckpoint>(ps(1)).size(), 1u);
  EXPECT_EQ(sent<PrepareCheckpoint>(ps(1)).back().attempt, prepare_.attempt);
  EXPECT_EQ(sent<PrepareCheckpoint>(ps(1)).back().folder, prepare_.folder);
  hello_again(worker(0));
  EXPECT_FALSE(is_given_up());
}

TEST_F(CheckpointReconnectTest, WorkerIsAskedForItsMarksAgain) {
  begin();
  all_prepared();
  sent_.clear();
  hello_again(worker(1));
  ASSERT_EQ(sent<MarkChannels>(worker(1)).size(), 1u);
  EXPECT_EQ(sent<MarkChannels>(worker(1)).back().attempt, prepare_.attempt);
  EXPECT_TRUE(sent<MarkChannels>(worker(0)).empty());
  EXPECT_FALSE(is_given_up());
}

TEST_F(CheckpointReconnectTest, PacerIsAskedForItsCutAgain) {
  begin(Mode::kSync);
  all_prepared();
  sent_.clear();
  hello_again(ps(0));
  ASSERT_EQ(sent<TakeCut>(ps(0)).size(), 1u);
  EXPECT_EQ(sent<TakeCut>(ps(0)).back().at, Step(100));
  hello_again(ps(1));
  hello_again(worker(0));
  EXPECT_TRUE(sent<TakeCut>(ps(1)).empty());
  EXPECT_TRUE(sent<MarkChannels>(worker(0)).empty());
  EXPECT_FALSE(is_given_up());
}

TEST_F(CheckpointReconnectTest, CheckpointWhoseShardsHaveCutSurvivesReconnects) {
  begin();
  all_prepared();
  written(0);
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  written(1);
  EXPECT_FALSE(is_given_up());
  ASSERT_TRUE(journal_.jobs[job_].checkpoint);
  EXPECT_EQ(journal_.jobs[job_].checkpoint->step, Step(100));
}

// The chief tells both ps tasks that the attempt has ended, but one of them isn't connected. If the chief didn't repeat
// this, that ps would make its workers wait for ever.
TEST_F(CheckpointReconnectTest, EndOfAnAttemptIsRepeatedToAPsThatWasAway) {
  begin();
  all_prepared();
  lose_connection(ps(1));
  say(ps(0), CheckpointFailed{job_, generation(job_), prepare_.attempt, ErrorCode::kFailed, "no space left"});
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(0)).size(), 1u);
  EXPECT_TRUE(sent<AbandonCheckpoint>(ps(1)).empty());
  hello_again(ps(1));
  ASSERT_EQ(sent<AbandonCheckpoint>(ps(1)).size(), 1u);
  EXPECT_GE(sent<AbandonCheckpoint>(ps(1)).back().attempt, prepare_.attempt);
}

TEST_F(CheckpointReconnectTest, EndOfAnAttemptIsRepeatedWhileTheNextOneBegins) {
  begin();
  all_prepared();
  lose_connection(ps(1));
  say(ps(0), CheckpointFailed{job_, generation(job_), prepare_.attempt, ErrorCode::kFailed, "no space left"});
  folder_is_held_ = true;
  pass(seconds(5));
  const std::size_t begun = count_work<BeginAttempt>();
  ASSERT_GT(begun, 1u);
  hello_again(ps(1));
  ASSERT_EQ(sent<AbandonCheckpoint>(ps(1)).size(), 1u);
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(1)).back().attempt, prepare_.attempt) << "and not the next one";
}

TEST_F(CheckpointReconnectTest, HoldThatIsToLastIsNotEndedByAReconnect) {
  job_ = train(every(0));
  report_pacer(70, 0);
  obedient_ = false;
  say(ps(1), LeaveRequest{});
  prepare_ = sent<PrepareCheckpoint>(ps(0)).back();
  ASSERT_TRUE(prepare_.holds);
  all_prepared();
  written(0);
  folder_is_held_ = true;
  written(1);
  hello_again(ps(0));
  EXPECT_FALSE(is_given_up()) << "it is being committed";
  release_folder();
  hello_again(ps(0));
  EXPECT_FALSE(is_given_up()) << "nothing is applied any more in this generation";
}

TEST_F(CheckpointReconnectTest, SilentPsThatHasDoneItsPartDoesNotEndTheAttempt) {
  begin();
  all_prepared();
  written(1);
  silence(ps(1));
  pass(seconds(2));
  ASSERT_EQ(status(job_).state, JobState::kPaused) << status(job_).reason;
  EXPECT_FALSE(is_given_up());
  written(0);
  EXPECT_TRUE(journal_.jobs[job_].checkpoint);
}

TEST_F(CheckpointReconnectTest, StopDoesNotUndoACommitButEndsItsHold) {
  job_ = train(every(0));
  report_pacer(70, 0);
  obedient_ = false;
  say(ps(1), LeaveRequest{});
  prepare_ = sent<PrepareCheckpoint>(ps(0)).back();
  all_prepared();
  written(0);
  folder_is_held_ = true;
  written(1);
  step(Stop{ClientId(1), "a", false, "somebody"});
  EXPECT_TRUE(is_given_up()) << "workers are to end their step";
  release_folder();
  ASSERT_TRUE(journal_.jobs[job_].checkpoint);
  EXPECT_EQ(journal_.jobs[job_].checkpoint->step, Step(70));
}

TEST_F(CheckpointTest, LastCheckpointIsTakenBeforeTheJobFinishes) {
  const JobId job = train(every(0), 1);
  lend_all(job);
  report_pacer(7, 1);
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
  EXPECT_EQ(journal_.jobs[job].checkpoint->step, Step(7));
}

TEST_F(CheckpointTest, LastCheckpointIsRetriedForMinutesAndThenFailsTheJob) {
  const JobId job = finish_on_a_full_disk();
  pass(seconds(100));
  EXPECT_FALSE(is_final(status(job).state)) << "somebody may make room";
  EXPECT_NE(status(job).reason.find("no space left"), std::string::npos) << status(job).reason;
  pass(6 * derive_timeouts(config_.heartbeat.timeout).setup);
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("no space left"), std::string::npos) << status(job).reason;
}

TEST_F(CheckpointTest, LastCheckpointIsTakenWhenThereIsRoomAgain) {
  const JobId job = finish_on_a_full_disk();
  pass(seconds(100));
  folder_error_.reset();
  pass(seconds(11));
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
}

class CheckpointFolderTest : public CheckpointTest {
 protected:
  JobId submit_with(const Error& error) {
    folder_error_ = error;
    start_chief(2, 2);
    hello_all();
    return submit(every(100));
  }
};

TEST_F(CheckpointFolderTest, JobWaitsForAFullDiskAndTheStatusSaysSo) {
  const JobId job = submit_with(Error{ErrorCode::kFailed, "/checkpoints: no space left on device"});
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_NE(status(job).reason.find("no space left"), std::string::npos) << status(job).reason;
  EXPECT_NE(event("checkpoint_failed").find("no space left"), std::string::npos) << event("checkpoint_failed");
  folder_error_.reset();
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(CheckpointFolderTest, DiskThatStaysFullFailsTheJobWithTheCause) {
  const JobId job = submit_with(Error{ErrorCode::kFailed, "/checkpoints: no space left on device"});
  pass(seconds(121));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("no space left"), std::string::npos) << status(job).reason;
}

// The first request to the disk failed, and the second one hangs.
TEST_F(CheckpointFolderTest, DiskThatHangsAfterAnErrorIsReportedAsHanging) {
  const JobId job = submit_with(Error{ErrorCode::kFailed, "can't read /checkpoints/a: input/output error"});
  folder_is_held_ = true;
  pass(seconds(121));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("does its file system hang? Before that: can't read"), std::string::npos)
      << status(job).reason;
}

TEST_F(CheckpointFolderTest, FolderThatTheChiefMayNotWriteIsReportedAtOnce) {
  const JobId job = submit_with(Error{ErrorCode::kNoPermission, "can't create /checkpoints/a: Permission denied"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kNoPermission);
}

TEST_F(CheckpointFolderTest, NewChiefOpensTheFolderWhenTheDiskIsWellAgain) {
  const JobId job = train(every(100));
  folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  folder_error_.reset();
  pass(seconds(2));
  report_pacer(100, 0);
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
}

TEST_F(CheckpointFolderTest, NewChiefWaitsForTheFolderBeforeTheLastCheckpoint) {
  const JobId job = train(every(0), 1);
  lend_all(job);
  folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  hello_again(worker(0));
  report_pacer(7, 1);
  finish(job, worker(0));
  pass(seconds(20));
  EXPECT_FALSE(is_final(status(job).state)) << status(job).reason;
  folder_error_.reset();
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
}

TEST_F(CheckpointTest, SaveIsRefusedWithoutADirectory) {
  train(job_config("a"));
  step(Save{ClientId(3), ""});
  ASSERT_TRUE(refused_);
  EXPECT_NE(refused_->reason.find("checkpoint.directory"), std::string::npos) << refused_->reason;
}

TEST_F(CheckpointTest, SaveTakesACheckpointNow) {
  train(every(0));
  report_pacer(5, 0);
  step(Save{ClientId(3), ""});
  EXPECT_EQ(count_work<CommitAttempt>(), 1u);
  EXPECT_FALSE(refused_);
}

TEST_F(CheckpointTest, SaveIsRefusedWithTheReasonWhileTheJobIsPaused) {
  train(every(0));
  report_pacer(5, 0);
  silence(ps(1));
  pass(seconds(2));
  step(Save{ClientId(3), ""});
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
  EXPECT_NE(refused_->reason.find("paused: ps/1: no heartbeat"), std::string::npos) << refused_->reason;
}

TEST_F(CheckpointTest, SaveIsRefusedWhereTheFolderCouldNotBeOpened) {
  const JobId job = train(every(0));
  report_pacer(5, 0);
  folder_error_ = Error{ErrorCode::kNoInput, "can't make the folder"};
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  step(Save{ClientId(3), ""});
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
  EXPECT_NE(refused_->reason.find("/checkpoints"), std::string::npos) << refused_->reason;
}

}  // namespace
}  // namespace disttrain::chiefd
