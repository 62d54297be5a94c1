#include "chiefd/core/job/rules/losses.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

using What = Finding::What;

class LossesRule : public RuleTest {};

TEST_F(LossesRule, OwnerOfShards) {
  struct Case {
    Stage stage;
    What what;
    bool was_told_to_end;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kCreate, What::kSilent, false, "recover (counts): ps/0: it is silent"},
      {Stage::kOpen, What::kLost, false, "recover (counts): ps/0: it is silent"},
      {Stage::kTrain, What::kSilent, false, "pause for ps/0: ps/0: it is silent; waiting for it to return"},
      {Stage::kEvaluate, What::kSilent, true, "pause for ps/0: ps/0: it is silent; waiting for it to return"},
      {Stage::kTrain, What::kLost, false, "recover (counts): ps/0: it is silent"},
      {Stage::kTrain, What::kLost, true, "recover (left): ps/0: it is silent"},
      {Stage::kSettle, What::kLeft, true, "recover (left): ps/0: it is silent"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(text(rules::lost_owner(*job_, finding(one.what, ps(0), "it is silent", one.was_told_to_end))),
              one.verdict)
        << "stage " << static_cast<int>(one.stage);
  }
}

TEST_F(LossesRule, SilentPsIsWaitedForAsLongAsARollbackWouldLose) {
  struct Case {
    Duration since_checkpoint;
    Duration ps_timeout;
    Duration silent;
    bool rolls_back;
  };
  const Duration s = std::chrono::seconds(1);
  const Case cases[] = {
      {0 * s, 0 * s, 5 * s, false},      // at least Timeouts::silent_ps
      {0 * s, 0 * s, 6 * s, true},       //
      {30 * s, 0 * s, 30 * s, false},    // as long as the training since the checkpoint took
      {30 * s, 0 * s, 31 * s, true},     //
      {600 * s, 0 * s, 60 * s, false},   // at most 60 heartbeat timeouts
      {600 * s, 0 * s, 61 * s, true},    //
      {600 * s, 20 * s, 20 * s, false},  // or job.ps_timeout
      {600 * s, 20 * s, 21 * s, true},  {600 * s, 1 * s, 5 * s, false},  // but never less than Timeouts::silent_ps
  };
  for (const Case& one : cases) {
    config_.job.ps_timeout = one.ps_timeout;
    make_job_at(Stage::kTrain);
    const Instant since = now_;
    job_->schedule.begin(since - one.since_checkpoint);
    job_->pauses.note_silent(ps(1), Silence{since});
    EXPECT_EQ(std::holds_alternative<Recover>(rules::silent_too_long(*job_, tasks_, since + one.silent)),
              one.rolls_back)
        << one.since_checkpoint / s << " s of training, silent for " << one.silent / s << " s";
  }
}

TEST_F(LossesRule, PsThatIsCutOffIsNotBlamed) {
  make_job_at(Stage::kTrain);
  job_->pauses.note_silent(ps(1), Silence{now_, true, "2 of 3 workers can't reach ps/1"});
  EXPECT_EQ(text(rules::silent_too_long(*job_, tasks_, now_ + std::chrono::hours(1))),
            "recover (link): 2 of 3 workers can't reach ps/1");
}

TEST_F(LossesRule, WorkerAtTheStart) {
  struct Case {
    Stage stage;
    std::uint32_t min_workers;
    bool was_told_to_end;
    bool was_lost_before;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kOpen, 1, false, false, "start without worker/1: it ended"},
      {Stage::kOpen, 3, false, false, "recover (counts): worker/1: it ended"},
      {Stage::kOpen, 1, true, false, "recover (left): worker/1: it ended"},
      {Stage::kCreate, 1, false, false, "start again (spared) without worker/1: it ended"},
      {Stage::kCreate, 1, false, true, "start again (counts) without worker/1: it ended"},
      {Stage::kRoster, 3, false, false, "recover (counts): worker/1: it ended"},
  };
  for (const Case& one : cases) {
    config_.job.min_workers = one.min_workers;
    make_job_at(one.stage);
    if (one.was_lost_before) job_->candidates.note_lost_at_start(worker(1));
    EXPECT_EQ(
        text(rules::lost_worker(*job_, tasks_, now_, finding(What::kLost, worker(1), "it ended", one.was_told_to_end))),
        one.verdict)
        << "stage " << static_cast<int>(one.stage) << ", min_workers " << one.min_workers;
  }
}

TEST_F(LossesRule, WorkerWithAFixedRankIsNotLeftOutOfAStart) {
  config_.job.on_worker_loss = OnWorkerLoss::kWait;
  make_job_at(Stage::kOpen);
  job_->workers.fix_ranks(job_->workers.roster().members);
  EXPECT_EQ(text(rules::lost_worker(*job_, tasks_, now_, finding(What::kLost, worker(1), "it ended"))),
            "recover (counts): worker/1: it ended");
}

TEST_F(LossesRule, WorkerOfAGenerationThatTrains) {
  struct Case {
    Stage stage;
    bool was_told_to_end;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kTrain, false, "lose (counts) worker/1: it ended"},
      {Stage::kTrain, true, "lose (left) worker/1: it ended"},
      {Stage::kReclaim, false, "await again worker/1"},
      {Stage::kSettle, false, "end (counts) without worker/1"},
      {Stage::kFinalCut, true, "end (left) without worker/1"},
      {Stage::kEvaluate, false, "end (counts) without worker/1"},
  };
  const auto verdict = [this](bool was_told_to_end) {
    return text(rules::lost_worker(*job_, tasks_, now_, finding(What::kLost, worker(1), "it ended", was_told_to_end)));
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    EXPECT_EQ(verdict(one.was_told_to_end), one.verdict) << "stage " << static_cast<int>(one.stage);
  }
  make_job_at(Stage::kReclaim);
  job_->stage.await(now_, {job_->generation.pacer()}, now_);
  EXPECT_EQ(verdict(false), "lose (counts) worker/1: it ended") << "the pacer was asked with this worker";
}

}  // namespace
}  // namespace disttrain::chiefd
