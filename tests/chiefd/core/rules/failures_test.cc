#include "chiefd/core/job/rules/failures.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class FailuresRule : public RuleTest {
 protected:
  TaskFailed failure(ErrorCode code, const std::string& reason) const {
    return TaskFailed{.job = job_->setup.id, .generation = job_->generation.number(), .code = code, .reason = reason};
  }
  std::string verdict(TaskId from, ErrorCode code, const std::string& reason = "no") {
    return text(rules::failed(*job_, tasks_, now_, member(from), failure(code, reason)));
  }
};

TEST_F(FailuresRule, ByStageTaskAndCode) {
  struct Case {
    Stage stage;
    TaskId from;
    ErrorCode code;
    const char* verdict;
  };
  const Case cases[] = {
      // No generation yet: a description that the job no longer waits for has failed.
      {Stage::kGather, worker(0), ErrorCode::kNoInput, "stay"},
      {Stage::kDescribe, worker(0), ErrorCode::kNoInput, "stay"},
      // A generation that is given up: its tasks fail as a consequence.
      {Stage::kRegather, worker(0), ErrorCode::kConfig, "stay"},
      {Stage::kFind, ps(0), ErrorCode::kFailed, "stay"},
      {Stage::kGeneration, ps(0), ErrorCode::kData, "stay"},
      // Shards that can't be created.
      {Stage::kCreate, ps(0), ErrorCode::kFailed, "recover (counts): ps/0: no"},
      {Stage::kCreate, ps(0), ErrorCode::kConfig, "fail: ps/0: no"},
      // A worker that can't open the job.
      {Stage::kOpen, worker(1), ErrorCode::kConfig, "start without worker/1 (process): no"},
      {Stage::kOpen, worker(1), ErrorCode::kUnavailable, "suspect worker/1: no"},
      // Training.
      {Stage::kTrain, worker(1), ErrorCode::kConfig, "fail: worker/1: no"},
      {Stage::kTrain, worker(1), ErrorCode::kUnavailable, "suspect worker/1: no"},
      {Stage::kTrain, worker(1), ErrorCode::kFailed, "suspect worker/1: no"},
      {Stage::kTrain, ps(1), ErrorCode::kUnavailable, "suspect ps/1: no"},
      {Stage::kTrain, ps(1), ErrorCode::kFailed, "fail: ps/1: no"},
      {Stage::kEvaluate, worker(1), ErrorCode::kFailed, "evaluate without worker/1: no"},
  };
  config_.checkpoint.directory = "/data";
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(verdict(one.from, one.code), one.verdict)
        << to_string(one.from) << " at stage " << static_cast<int>(one.stage);
  }
}

TEST_F(FailuresRule, OfAnEarlierGenerationOrAStrangerChangesNothing) {
  make_job_at(Stage::kTrain);
  TaskFailed old = failure(ErrorCode::kConfig, "no");
  old.generation = Generation(0);
  EXPECT_EQ(text(rules::failed(*job_, tasks_, now_, member(worker(0)), old)), "stay");
  job_->workers.mark_lost(member(worker(0)));
  EXPECT_EQ(verdict(worker(0), ErrorCode::kConfig), "stay");
}

TEST_F(FailuresRule, DamagedCheckpointIsSetAside) {
  config_.checkpoint.directory = "/data";
  make_job_at(Stage::kCreate);
  EXPECT_EQ(verdict(ps(0), ErrorCode::kData), "fail: ps/0: no");
  job_->generation.restore_from(RestorePoint{"/data/mnist/ckpt-1-10", Generation(1), Step(10), {}, 0, {}});
  EXPECT_EQ(verdict(ps(0), ErrorCode::kData), "set aside: ps/0: no");
}

// The folder may come back that an earlier generation used.
TEST_F(FailuresRule, FolderThatIsAwayIsTriedAgainOnlyIfItWasUsedBefore) {
  config_.checkpoint.directory = "/data";
  make_job_at(Stage::kCreate);
  EXPECT_EQ(verdict(ps(0), ErrorCode::kNoInput), "fail: ps/0: no");
  job_->generation.begin(Generation());
  EXPECT_EQ(verdict(ps(0), ErrorCode::kNoInput), "recover (counts): ps/0: no");
}

TEST_F(FailuresRule, TooFewOthersCantOpenTheJob) {
  config_.job.min_workers = 3;
  make_job_at(Stage::kOpen);
  EXPECT_EQ(verdict(worker(1), ErrorCode::kConfig), "fail: worker/1: no");
}

TEST_F(FailuresRule, WorkerThatWasAboutToJoin) {
  make_job_at(Stage::kTrain);
  const auto joining = [&](ErrorCode code, bool was_invited) {
    return text(rules::failed_to_join(*job_, tasks_, now_, member(worker(2)), failure(code, "no memory"), was_invited));
  };
  EXPECT_EQ(joining(ErrorCode::kUnavailable, true), "leave out worker/2: no memory");
  EXPECT_EQ(joining(ErrorCode::kConfig, false), "leave out worker/2: no memory");
  EXPECT_EQ(joining(ErrorCode::kUnavailable, false), "refuse worker/2: no memory");
  disconnect(worker(0));
  config_.job.min_workers = 3;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(joining(ErrorCode::kUnavailable, true), "ask again worker/2: no memory");
}

TEST_F(FailuresRule, FaultOfATrainer) {
  make_job_at(Stage::kTrain);
  const TaskFailed own = failure(ErrorCode::kFailed, "the loss has no gradient");
  EXPECT_TRUE(rules::is_fault(*job_, member(worker(0)), own));
  EXPECT_EQ(text(rules::at_fault(member(worker(0)), own, Faults::Verdict::kFirst)),
            "lose (counts) worker/0: the loss has no gradient");
  EXPECT_EQ(text(rules::at_fault(member(worker(0)), own, Faults::Verdict::kEveryWorker)),
            "fail: worker/0: each worker has failed in the same way, so another try would fail too: the loss has no "
            "gradient");
  EXPECT_EQ(text(rules::lost_for_own_fault(*job_, member(worker(0)), "x", Faults::Verdict::kFirst)), "stay");
  EXPECT_EQ(text(rules::lost_for_own_fault(*job_, member(worker(0)), "x", Faults::Verdict::kAgain)),
            "leave out worker/0: x");
  config_.job.min_workers = 3;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(text(rules::lost_for_own_fault(*job_, member(worker(0)), "x", Faults::Verdict::kAgain)), "stay");
}

TEST_F(FailuresRule, ComplaintIsSettledWhenAllOthersWereHeard) {
  make_job_at(Stage::kTrain);
  const Instant since = now_;
  const auto is_settled = [&] { return rules::is_settled(*job_, tasks_, now_, member(worker(0)), since); };
  now_ += kSilent / 2;
  for (const TaskId task : {ps(0), ps(1), worker(1)}) hear(task);
  EXPECT_FALSE(is_settled());
  hear(worker(2));
  EXPECT_TRUE(is_settled());
}

TEST_F(FailuresRule, ComplaintIsSettledAfterATimeAnyway) {
  make_job_at(Stage::kTrain);
  const Instant since = now_;
  now_ += kSilent + timeouts_.interval + timeouts_.heartbeat;
  EXPECT_TRUE(rules::is_settled(*job_, tasks_, now_, member(worker(0)), since));
}

TEST_F(FailuresRule, ComplaintWhileAllOthersAreHealthy) {
  struct Case {
    Stage stage;
    TaskId from;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kTrain, worker(1), "lose (counts) worker/1: lost ps/0"},
      {Stage::kOpen, worker(1), "start without worker/1: lost ps/0"},
      {Stage::kSettle, worker(1), "recover (counts): worker/1: lost ps/0"},
      {Stage::kTrain, ps(1), "recover (counts): ps/1: lost ps/0"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(text(rules::settled(*job_, tasks_, now_, member(one.from), "lost ps/0")), one.verdict);
  }
}

TEST_F(FailuresRule, PsThatCantReachAnotherPsIsNotBlamed) {
  make_job_at(Stage::kTrain);
  job_->links.accuse(now_, {ps(1), ps(0)}, kSilent, "timed out");
  const Verdict verdict = rules::settled(*job_, tasks_, now_, member(ps(1)), "lost ps/0");
  ASSERT_TRUE(std::holds_alternative<Recover>(verdict));
  EXPECT_EQ(std::get<Recover>(verdict).loss, Loss::kLink);
}

}  // namespace
}  // namespace disttrain::chiefd
