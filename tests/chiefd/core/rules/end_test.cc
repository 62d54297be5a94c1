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
