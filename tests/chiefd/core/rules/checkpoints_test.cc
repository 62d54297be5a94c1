#include "chiefd/core/job/rules/checkpoints.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class CheckpointsRule : public RuleTest {
 protected:
  // A job that trains since `age`, with a checkpoint each minute.
  void make_training_job(Duration age) {
    config_.checkpoint.directory = "/data";
    config_.checkpoint.every = seconds(60);
    make_job_at(Stage::kTrain);
    job_->folder.is_open = true;
    job_->loans.is_allowed = true;
    job_->schedule.begin(now_ - age);
  }
  std::string next() { return text(rules::next_attempt(*job_, tasks_, now_)); }
  void begin_attempt(Attempt::Phase phase) {
    Attempt attempt;
    attempt.number = 1;
    attempt.phase = phase;
    attempt.deadline = now_ + seconds(600);
    job_->attempts.current = attempt;
  }
  void write(std::uint32_t shard, Step version) {
    ShardWritten written;
    written.job = job_->setup.id;
    written.generation = job_->generation.number();
    written.attempt = 1;
    written.shard = ShardId(shard);
    written.entry.version = version;
    if (shard == 0) written.pacer = PacerReport();
    job_->attempts.current->written[written.shard] = written;
  }
};

TEST_F(CheckpointsRule, DueByTime) {
  make_training_job(seconds(59));
  EXPECT_EQ(next(), "stay");
  make_training_job(seconds(60));
  EXPECT_EQ(next(), "take checkpoint at 0");
}

TEST_F(CheckpointsRule, NotWhileSomethingIsUnderWay) {
  make_training_job(seconds(60));
  job_->folder.is_open = false;
  EXPECT_EQ(next(), "stay");
  make_training_job(seconds(60));
  job_->loans.is_allowed = false;
  EXPECT_EQ(next(), "stay");
  make_training_job(seconds(60));
  job_->workers.join_again(member(worker(2)), now_);
  EXPECT_EQ(next(), "stay");
  make_training_job(seconds(60));
  job_->schedule.try_at(now_ + seconds(1));
  EXPECT_EQ(next(), "stay");
  make_training_job(seconds(60));
  job_->condition.set(JobState::kPaused, "ps/0 is silent");
  EXPECT_EQ(next(), "stay");
}

TEST_F(CheckpointsRule, AtOnceIfAClientAsks) {
  make_training_job(seconds(0));
  job_->savers.clients.push_back(ClientId(1));
  EXPECT_EQ(next(), "take checkpoint at 0");
}

TEST_F(CheckpointsRule, AtOnceForAPsThatLeaves) {
  make_training_job(seconds(0));
  job_->condition.set(JobState::kPaused, "ps/0 was told to end");
  tasks_.begin_leave(member(ps(0)));
  EXPECT_EQ(next(), "take checkpoint at 0");
  job_->pauses.note_silent(ps(1), Silence{now_});
  EXPECT_EQ(next(), "stay");
}

TEST_F(CheckpointsRule, LastOneAgainAfterAFailure) {
  make_training_job(seconds(0));
  job_->stage.enter(Stage::kFinalCut);
  EXPECT_EQ(next(), "take last checkpoint");
}

TEST_F(CheckpointsRule, AttemptMayTakeLongWhileAPsWrites) {
  make_training_job(seconds(60));
  begin_attempt(Attempt::Phase::kCut);
  now_ += seconds(600);
  EXPECT_EQ(next(), "give up attempt: it took too long");
  Heartbeat heartbeat;
  heartbeat.job = job_->setup.id;
  heartbeat.generation = job_->generation.number();
  for (heartbeat.work = 1; heartbeat.work <= 2; ++heartbeat.work)
    tasks_.hear(now_, member(ps(1)), heartbeat, findings_);
  EXPECT_EQ(next(), "stay");
}

TEST_F(CheckpointsRule, CommitsWhenAllShardsHaveWrittenTheSame) {
  make_training_job(seconds(60));
  begin_attempt(Attempt::Phase::kCut);
  EXPECT_EQ(text(rules::written(*job_)), "stay");
  write(0, Step(10));
  EXPECT_EQ(text(rules::written(*job_)), "stay");
  write(1, Step(10));
  EXPECT_EQ(text(rules::written(*job_)), "commit");
  job_->attempts.current->phase = Attempt::Phase::kPrepare;  // a ps hasn't reserved its space yet
  EXPECT_EQ(text(rules::written(*job_)), "stay");
}

TEST_F(CheckpointsRule, FilesWithoutALedgerAreGivenUp) {
  make_training_job(seconds(60));
  begin_attempt(Attempt::Phase::kCut);
  write(0, Step(10));
  write(1, Step(10));
  job_->attempts.current->written[ShardId(0)].pacer.reset();
  EXPECT_EQ(text(rules::written(*job_)), "give up attempt: shard 0, the pacer, reported its file without the ledger");
}

TEST_F(CheckpointsRule, JobThatHadCheckpointsDoesntBeginAnew) {
  make_training_job(seconds(60));
  job_->stage.enter(Stage::kFind);
  FolderAnswer answer;
  EXPECT_EQ(text(rules::folder_read(*job_, answer)), "stay");
  answer.broken = {"ckpt-1-10: a byte differs"};
  EXPECT_EQ(text(rules::folder_read(*job_, answer)).find("fail: no checkpoint in /data/mnist can be used any more"),
            0u);
  answer.newest = RestorePoint{"/data/mnist/ckpt-1-5", Generation(1), Step(5), {}, 0, {}};
  EXPECT_EQ(text(rules::folder_read(*job_, answer)), "stay");
  config_.checkpoint.restore = Restore::kNone;
  make_training_job(seconds(60));
  answer.newest.reset();
  EXPECT_EQ(text(rules::folder_read(*job_, answer)), "stay");
}

TEST_F(CheckpointsRule, FolderThatFails) {
  struct Case {
    Stage stage;
    ErrorCode code;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kFolder, ErrorCode::kFailed, "stay"},
      {Stage::kTrain, ErrorCode::kConfig, "stay"},
      {Stage::kFind, ErrorCode::kConfig, "stay"},
      {Stage::kFolder, ErrorCode::kConfig, "stay"},  // an earlier generation used it
  };
  for (const Case& one : cases) {
    make_training_job(seconds(0));
    job_->stage.enter(one.stage);
    EXPECT_EQ(text(rules::folder_failed(*job_, Error{one.code, "locked"})), one.verdict);
  }
  make_job();  // was just submitted
  job_->stage.enter(Stage::kFolder);
  EXPECT_EQ(text(rules::folder_failed(*job_, Error{ErrorCode::kConfig, "locked"})), "fail: locked");
}

}  // namespace
}  // namespace disttrain::chiefd
