// The rules that bound a wait: for absent tasks, for the chief's own disk, for the next step, and between rollbacks.
#include "chiefd/core/job/rules/absences.h"
#include "chiefd/core/job/rules/disk.h"
#include "chiefd/core/job/rules/recovery.h"
#include "chiefd/core/job/rules/stall.h"
#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class AbsencesRule : public RuleTest {
 protected:
  std::string overdue() { return text(rules::overdue_absence(*job_, tasks_, now_)); }
  void wait(Role role, Duration lasts, std::optional<Duration> limit) {
    job_->absences.current = {Absence{role, now_ - lasts, limit}};
  }
};

TEST_F(AbsencesRule, LacksTheTasksWithoutWhichTheJobCantGoOn) {
  make_job_at(Stage::kTrain);
  EXPECT_EQ(rules::lacking(*job_, tasks_, now_), std::vector<Role>());
  job_->pauses.note_silent(ps(0), Silence{now_});
  EXPECT_EQ(rules::lacking(*job_, tasks_, now_), std::vector<Role>{Role::kPs});
  job_->pauses.begin_shortage(now_);
  EXPECT_EQ(rules::lacking(*job_, tasks_, now_), (std::vector<Role>{Role::kPs, Role::kWorker}));
}

TEST_F(AbsencesRule, WaitForWorkersFailsAtItsLimit) {
  config_.data.sharding = Sharding::kNone;
  config_.job.min_workers = 3;
  make_job_at(Stage::kTrain);
  job_->workers.lose(member(worker(2)));
  wait(Role::kWorker, seconds(20), std::nullopt);
  EXPECT_EQ(overdue(), "stay");
  wait(Role::kWorker, seconds(19), seconds(20));
  EXPECT_EQ(overdue(), "stay");
  wait(Role::kWorker, seconds(20), seconds(20));
  EXPECT_EQ(overdue(), "fail: 2 of at least 3 workers are there; waiting for others for 20 s (job.workers_timeout)");
}

// When its time is over, the job rolls back, and other ps tasks get the time to take the shards.
TEST_F(AbsencesRule, SilentPsDoesntFailTheJob) {
  make_job_at(Stage::kTrain);
  wait(Role::kPs, seconds(1000), seconds(20));
  EXPECT_EQ(overdue(), "stay");
}

TEST_F(AbsencesRule, PsThatStaysAwayFailsARollbackWhenOthersCouldHaveTakenItsShards) {
  make_job_at(Stage::kRegather);
  Rollback rollback;
  rollback.cause = Cause{ps(1), "its process has ended"};
  rollback.shortage = "waiting for ps/1";
  rollback.gathers_since = now_ - 2 * timeouts_.silent_ps + seconds(1);
  job_->rollbacks.begin(rollback);
  wait(Role::kPs, seconds(20), seconds(20));
  EXPECT_EQ(overdue(), "stay");
  now_ += seconds(1);
  EXPECT_EQ(overdue(), "fail: ps/1: its process has ended; waiting for ps/1 for 20 s (job.ps_timeout)");
}

class DiskRule : public RuleTest {};

TEST_F(DiskRule, PausesWhatTrainsAndFailsWhatWaitsTooLong) {
  struct Case {
    Stage stage;
    bool pauses;  // for the disk already
    Duration late;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kTrain, false, seconds(30), "stay"},
      {Stage::kTrain, true, seconds(30), "end disk pause: the chief's own disk writes again"},
      {Stage::kTrain, false, seconds(31), "pause for disk: the chief's own disk has written no record for 31 s"},
      {Stage::kTrain, true, seconds(31), "stay"},
      {Stage::kCreate, false, seconds(31), "stay"},
      {Stage::kCreate, true, seconds(31), "end disk pause: "},
      {Stage::kReclaim, false, seconds(31), "stay"},
      {Stage::kTrain, true, seconds(121),
       "fail: the chief's own disk has written no record for 121 s: check the disk of chief.state_directory and submit "
       "the job again"},
      {Stage::kGeneration, false, seconds(121),
       "fail: the chief's own disk has written no record for 121 s: check the disk of chief.state_directory and submit "
       "the job again"},
  };
  config_.job.stall_timeout = seconds(60);
  for (const Case& one : cases) {
    make_job_at(one.stage);
    job_->pauses.set_disk_late(one.pauses);
    EXPECT_EQ(text(rules::late_disk(*job_, one.late)), one.verdict) << "stage " << static_cast<int>(one.stage);
  }
}

class StallRule : public RuleTest {
 protected:
  std::string stalled(Duration after) { return text(rules::stalled(*job_, tasks_, now_ + after)); }
};

TEST_F(StallRule, JobWithoutAStepFails) {
  config_.job.stall_timeout = seconds(60);
  make_job_at(Stage::kTrain);
  Heartbeat heartbeat;
  heartbeat.phase = Phase::kCompute;
  heartbeat.in_phase = seconds(50);
  tasks_.hear(now_, member(worker(1)), heartbeat, findings_);
  EXPECT_EQ(stalled(seconds(60)), "stay");
  EXPECT_NE(stalled(seconds(61)).find("fail: worker/1: no step for 60 s at step 0"), std::string::npos)
      << stalled(seconds(61));
  job_->pauses.begin_shortage(now_);
  EXPECT_EQ(stalled(seconds(61)), "stay");
}

TEST_F(StallRule, BrokenLinkBlamesNobody) {
  config_.job.stall_timeout = seconds(60);
  make_job_at(Stage::kTrain);
  job_->links.accuse(now_, {worker(0), ps(1)}, seconds(1), "timed out");
  EXPECT_EQ(stalled(seconds(61)).find("fail: no step for 60 s at step 0"), 0u) << stalled(seconds(61));
}

TEST_F(StallRule, LateFenceRollsBack) {
  make_job_at(Stage::kTrain);
  Fence fence{member(worker(1)), {ShardId(1)}, RosterVersion(2), true, std::nullopt, now_};
  job_->fences.all = {fence};
  EXPECT_EQ(text(rules::late_fence(*job_, now_)).find("recover (counts): ps/1: it heartbeats, but didn't fence"), 0u);
  EXPECT_EQ(text(rules::late_fence(*job_, now_ - seconds(1))), "stay");
  fence.held = Ticket(9);  // the shards haven't been asked yet
  job_->fences.all = {fence};
  EXPECT_EQ(text(rules::late_fence(*job_, now_)), "stay");
  fence = Fence{member(worker(1)), {}, RosterVersion(2), false, std::nullopt, now_};
  job_->fences.all = {fence};
  EXPECT_EQ(text(rules::late_fence(*job_, now_)).find("recover (counts): ps/0"), 0u) << "the pacer owes the roster";
}

class RecoveryRule : public RuleTest {
 protected:
  const Cause cause_{ps(0), "its process has ended"};
};

TEST_F(RecoveryRule, WhetherTheJobRollsBack) {
  make_job_at(Stage::kTrain);
  EXPECT_EQ(text(rules::after_loss(*job_, cause_, Loss::kCounts)), "recover (counts): ps/0: its process has ended");
  job_->condition.begin_stopping("its loss is small enough", true);
  EXPECT_EQ(text(rules::after_loss(*job_, cause_, Loss::kLink)), "recover (link): ps/0: its process has ended");
  make_job_at(Stage::kTrain);
  job_->condition.begin_stopping("stopped by ann");
  EXPECT_EQ(text(rules::after_loss(*job_, cause_, Loss::kCounts)),
            "close as stopped: stopped by ann before the workers had finished their step: ps/0: its process has ended");
  make_job_at(Stage::kClose);
  EXPECT_EQ(text(rules::after_loss(*job_, cause_, Loss::kCounts)), "stay");
}

TEST_F(RecoveryRule, LossesAreBounded) {
  config_.job.max_restarts = 2;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(text(rules::recovery(*job_, cause_, Loss::kCounts, 2)), "roll back (counts): ps/0: its process has ended");
  EXPECT_EQ(text(rules::recovery(*job_, cause_, Loss::kCounts, 3)),
            "fail: ps/0: its process has ended; this is loss number 3 within job.restart_window, and job.max_restarts "
            "is 2");
  make_job();
  EXPECT_EQ(text(rules::recovery(*job_, cause_, Loss::kCounts, 2)), "start over") << "no shard is placed yet";
  make_job_at(Stage::kTrain);
  for (int i = 0; i < 102; ++i) job_->rollbacks.count_one(Loss::kCounts);
  EXPECT_EQ(text(rules::recovery(*job_, cause_, Loss::kCounts, 1)),
            "fail: ps/0: its process has ended; the job has rolled back 102 times without getting further");
  EXPECT_EQ(text(rules::recovery(*job_, cause_, Loss::kLink, 0)), "roll back (link): ps/0: its process has ended");
}

}  // namespace
}  // namespace disttrain::chiefd
