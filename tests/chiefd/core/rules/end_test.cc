// The rules for the end of a job: a stop by a client, tasks that may leave, and the last evaluations.
#include "chiefd/core/job/rules/end.h"

#include "chiefd/core/job/rules/evaluations.h"
#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class EndRule : public RuleTest {};

TEST_F(EndRule, StopByAClient) {
  struct Case {
    Stage stage;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kQueued, "release: stopped by ann"},
      {Stage::kGather, "close as stopped: stopped by ann before the job trained"},
      {Stage::kOpen, "close as stopped: stopped by ann before the job trained"},
      {Stage::kTrain, "stop steps: stopped by ann"},
      {Stage::kReclaim, "stop steps (later): stopped by ann"},
      {Stage::kSettle, "stop steps (later): stopped by ann"},
      {Stage::kFinalCut, "stop steps (later): stopped by ann"},
      {Stage::kEvaluate, "close as stopped: stopped by ann during its last evaluation"},
      {Stage::kClose, "stay"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(text(rules::stopped_by_client(*job_, "stopped by ann")), one.verdict);
  }
  make_job_at(Stage::kRegather);
  job_->rollbacks.begin(Rollback{});
  EXPECT_EQ(text(rules::stopped_by_client(*job_, "stopped by ann")),
            "close as stopped: stopped by ann while the job recovered");
  make_job_at(Stage::kTrain);
  job_->condition.begin_stopping("stopped by bob");
  EXPECT_EQ(text(rules::stopped_by_client(*job_, "stopped by ann")), "stay");
  job_->condition.begin_stopping("its loss gets no better", true);
  EXPECT_EQ(text(rules::stopped_by_client(*job_, "stopped by ann")), "stop steps: stopped by ann")
      << "after a rollback a job that finishes early would train on";
}

TEST_F(EndRule, KillByAClient) {
  struct Case {
    Stage stage;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kQueued, "release: killed by ann"},
      {Stage::kGather, "close as stopped: killed by ann"},
      {Stage::kTrain, "close as stopped: killed by ann"},
      {Stage::kReclaim, "close as stopped: killed by ann"},
      {Stage::kClose, "stay"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(text(rules::killed_by_client(*job_, "killed by ann")), one.verdict);
  }
  make_job_at(Stage::kReleased);
  job_->condition.set(JobState::kFailed, "no data");
  EXPECT_EQ(text(rules::killed_by_client(*job_, "killed by ann")), "stay");
}

TEST_F(EndRule, LastCheckpointIsTakenUnlessItIsThere) {
  const auto verdict = [this] { return text(rules::after_last_step(*job_)); };
  const auto make_job_at_step = [this](std::uint64_t step) {
    make_job_at(Stage::kSettle);
    PacerReport report;
    report.global_step = Step(step);
    job_->progress.note(now_, report, Step());
  };
  make_job_at_step(30);
  EXPECT_EQ(verdict(), "evaluate last") << "the job takes no checkpoints";
  config_.checkpoint.directory = "/data";
  make_job_at_step(30);
  EXPECT_EQ(verdict(), "take last checkpoint");
  job_->folder.newest = CheckpointRecord{JobId(3), job_->generation.number(), Step(20), "/data/mnist/20"};
  EXPECT_EQ(verdict(), "take last checkpoint");
  job_->folder.newest->step = Step(30);
  EXPECT_EQ(verdict(), "evaluate last");
  job_->folder.newest->generation = Generation(job_->generation.number().value + 1);
  EXPECT_EQ(verdict(), "take last checkpoint") << "another generation's step has other parameters";
  job_->generation.restore_from(RestorePoint{"/data/mnist/30", Generation(), Step(30), {}, 0, {}});
  EXPECT_EQ(verdict(), "evaluate last") << "the generation made no step";
  make_job_at_step(0);
  EXPECT_EQ(verdict(), "evaluate last") << "the job made no step";
  config_.checkpoint.at_end = false;
  make_job_at_step(30);
  EXPECT_EQ(verdict(), "evaluate last");
}

TEST_F(EndRule, WhoMayLeave) {
  struct Case {
    Stage stage;
    bool ps_may;
    bool worker_may;
  };
  const Case cases[] = {
      {Stage::kCreate, true, true},    {Stage::kTrain, true, false},  // the job takes no checkpoints
      {Stage::kReclaim, false, false}, {Stage::kSettle, false, false}, {Stage::kFinalCut, false, false},
      {Stage::kEvaluate, false, true}, {Stage::kClose, false, false},  // the end isn't written
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(rules::may_go(*job_, member(ps(0))), one.ps_may) << "stage " << static_cast<int>(one.stage);
    EXPECT_EQ(rules::may_go(*job_, member(worker(0))), one.worker_may) << "stage " << static_cast<int>(one.stage);
  }
}

TEST_F(EndRule, PsLeavesWhenItsShardsAreSaved) {
  config_.checkpoint.directory = "/data";
  make_job_at(Stage::kTrain);
  job_->folder.is_open = true;
  EXPECT_FALSE(rules::may_go(*job_, member(ps(0))));
  job_->schedule.set_saved(true);
  EXPECT_TRUE(rules::may_go(*job_, member(ps(0))));
  make_job_at(Stage::kTrain);
  job_->folder.is_open = true;
  for (int i = 0; i < 3; ++i) job_->schedule.note_failed("no space", true);
  EXPECT_TRUE(rules::may_go(*job_, member(ps(0)))) << "three attempts have failed";
}

TEST_F(EndRule, WorkerLeavesBetweenTwoPushes) {
  make_job_at(Stage::kTrain);
  job_->workers.tell_to_stop(member(worker(0)));
  EXPECT_FALSE(rules::may_go(*job_, member(worker(0))));
  job_->workers.note_stopped(member(worker(0)));
  EXPECT_TRUE(rules::may_go(*job_, member(worker(0))));
}

class EvaluationsRule : public RuleTest {
 protected:
  EvaluationsRule() {
    config_.checkpoint.directory = "/data";
    config_.evaluate.files = "test";
  }
  void make_job_that_waits() {
    make_job_at(Stage::kEvaluate, 1);
    job_->folder.is_open = true;
    job_->evaluations.awaits_all = true;
    job_->evaluations.awaits_since = now_;
    job_->evaluations.kept = {{Generation(1), Step(10), "/data/mnist/ckpt-1-10"}};
  }
  std::string at_end() { return text(rules::evaluators_at_end(*job_, tasks_, now_)); }
};

TEST_F(EvaluationsRule, JobWaitsForItsCheckpoints) {
  make_job_that_waits();
  EXPECT_EQ(at_end(), "stay");
  job_->evaluations.kept.clear();
  EXPECT_EQ(at_end(), "finish evaluation");
  job_->evaluations.listing = Ticket(3);  // the folder's answer may bring another one
  EXPECT_EQ(at_end(), "stay");
}

TEST_F(EvaluationsRule, JobDoesntWaitForNobody) {
  make_job_that_waits();
  now_ += 30 * kSilent - std::chrono::milliseconds(1);
  EXPECT_EQ(at_end(), "stay");
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(at_end(), "give up evaluators: no evaluator is connected");
  make_job_that_waits();
  job_->evaluations.lost_at_end = 3;
  EXPECT_EQ(at_end(), "give up evaluators: evaluators were lost 3 times");
}

}  // namespace
}  // namespace disttrain::chiefd
