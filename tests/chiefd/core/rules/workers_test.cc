#include "chiefd/core/job/rules/workers.h"

#include <optional>

#include "chiefd/core/job/views/workers.h"
#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class WorkersRule : public RuleTest {
 protected:
  // worker/2 was in the job, was lost, and is back as another process.
  void bring_back_worker_2() {
    config_.data.sharding = Sharding::kNone;
    make_job_at(Stage::kTrain);
    job_->workers.change({member(worker(0)), member(worker(1))});
    job_->workers.lose(member(worker(2)));
    job_->workers.forget(member(worker(2)));
  }
  std::string join_of_2() { return text(rules::joins(*job_, tasks_, now_, member(worker(2)))); }
  std::string quorum() { return text(rules::quorum(*job_, tasks_, now_)); }
  std::string hope() {
    const std::optional<views::Blame> blame = views::in_vain(*job_, tasks_, now_);
    return blame ? text(Fail{blame->error, blame->task}) : "stay";
  }
  void lose(TaskId worker, int times) {
    for (int i = 0; i < times; ++i) job_->worker_losses.note_lost(to_string(worker), now_, "its process has ended");
  }
};

TEST_F(WorkersRule, PreparedWorkerJoins) {
  bring_back_worker_2();
  EXPECT_EQ(join_of_2(), "join worker/2");
}

TEST_F(WorkersRule, MemberOfTheRosterStays) {
  make_job_at(Stage::kTrain);
  EXPECT_EQ(join_of_2(), "stay");
}

TEST_F(WorkersRule, WhoMayNotJoin) {
  bring_back_worker_2();
  job_->condition.begin_stopping("stopped by ann");
  EXPECT_EQ(join_of_2(), "stay");
  bring_back_worker_2();
  job_->links.accuse(now_, {worker(2), ps(1)}, kSilent, "timed out");
  EXPECT_EQ(join_of_2(), "stay");
  bring_back_worker_2();
  job_->candidates.leave_out(*tasks_.find(worker(2)), "no memory");
  EXPECT_EQ(join_of_2(), "stay");
  bring_back_worker_2();
  disconnect(worker(2));
  EXPECT_EQ(join_of_2(), "stay");
}

TEST_F(WorkersRule, WorkerThatIsLostAgainAndAgainWaitsAndThenStaysOut) {
  config_.job.max_restarts = 3;
  bring_back_worker_2();
  lose(worker(2), 1);
  EXPECT_EQ(join_of_2(), "join worker/2");
  lose(worker(2), 1);
  EXPECT_EQ(join_of_2(), "let in worker/2");
  lose(worker(2), 2);
  EXPECT_EQ(join_of_2(),
            "keep out worker/2: can't rejoin the job: it was lost 4 times within job.restart_window, and "
            "job.max_restarts is 3; the last loss: its process has ended");
}

// Its predecessor's last pushes may still be applied.
TEST_F(WorkersRule, WorkerWithAnOrderOfItsOwnJoinsAfterTheFence) {
  bring_back_worker_2();
  const Member before{worker(2), Incarnation(9)};
  job_->fences.all = {Fence{before, {ShardId(0)}, RosterVersion(2), false, std::nullopt, now_}};
  EXPECT_EQ(join_of_2(), "stay");
  job_->fences.all[0].worker = Member{worker(1), Incarnation(9)};
  EXPECT_EQ(join_of_2(), "join worker/2") << "another worker is fenced";
}

TEST_F(WorkersRule, QuorumIsMinWorkers) {
  config_.job.min_workers = 2;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(quorum(), "stay");
  job_->workers.lose(member(worker(0)));
  EXPECT_EQ(quorum(), "stay");
  job_->workers.lose(member(worker(1)));
  EXPECT_EQ(quorum(), "pause for workers: 1 of at least 2 workers are there; waiting for others");
  job_->pauses.begin_shortage(now_);
  EXPECT_EQ(quorum(), "stay") << "the job pauses already";
  job_->condition.begin_stopping("stopped by ann");
  EXPECT_EQ(quorum(), "end shortage: the workers are there");
  job_->stage.enter(Stage::kSettle);
  EXPECT_EQ(quorum(), "stay");
}

TEST_F(WorkersRule, WaitInVainFailsTheJobAlsoWhileItPauses) {
  config_.job.max_restarts = 1;
  config_.job.min_workers = 2;
  make_job_at(Stage::kTrain);
  for (const std::uint32_t index : {0, 1}) {
    job_->workers.lose(member(worker(index)));
    lose(worker(index), 2);
  }
  const std::string failure =
      "fail: worker/1: it was lost more than job.max_restarts (1) times within job.restart_window, and too few other "
      "workers are left; the last loss: its process has ended";
  EXPECT_EQ(quorum(), failure);
  job_->pauses.begin_shortage(now_);
  EXPECT_EQ(quorum(), failure);
}

TEST_F(WorkersRule, QuorumIsEveryRankIfTheJobWaits) {
  config_.job.on_worker_loss = OnWorkerLoss::kWait;
  config_.data.sharding = Sharding::kNone;
  make_job_at(Stage::kTrain);
  job_->workers.fix_ranks(job_->workers.roster().members);
  EXPECT_EQ(quorum(), "stay");
  job_->workers.mark_lost(member(worker(1)));
  EXPECT_EQ(quorum(), "pause for workers: waiting for worker/1 (job.on_worker_loss is \"wait\")");
}

TEST_F(WorkersRule, JobWithoutHopeFails) {
  config_.job.max_restarts = 1;
  config_.job.min_workers = 2;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(hope(), "stay");
  lose(worker(0), 2);
  EXPECT_EQ(hope(), "stay");
  lose(worker(1), 2);
  EXPECT_EQ(hope(),
            "fail: worker/1: it was lost more than job.max_restarts (1) times within job.restart_window, and too few "
            "other workers are left; the last loss: its process has ended");
}

TEST_F(WorkersRule, JobWithoutHopeBecauseWorkersCantTakePart) {
  config_.job.min_workers = 3;
  make_job_at(Stage::kTrain);
  job_->candidates.leave_out(*tasks_.find(worker(2)), "can't take part: no memory");
  EXPECT_EQ(hope(), "fail: worker/2: it can't take part: no memory; too few other workers are left");
}

TEST_F(WorkersRule, TrainingEndsWhenAllHaveFinishedOrNothingIsLeft) {
  config_.data.sharding = Sharding::kNone;
  make_job_at(Stage::kTrain);
  EXPECT_EQ(text(rules::training_end(*job_)), "stay");
  for (std::uint32_t i = 0; i < 3; ++i) job_->workers.finish(member(worker(i)));
  EXPECT_EQ(text(rules::training_end(*job_)), "settle");
  job_->stage.enter(Stage::kReclaim);
  EXPECT_EQ(text(rules::training_end(*job_)), "stay");
}

// Records of a lost worker are left.
TEST_F(WorkersRule, WorkersThatHaveFinishedLeaveTheRestToOthers) {
  make_job_at(Stage::kTrain);
  const auto verdict = [this] { return text(rules::finished_too_early(*job_, now_)); };
  job_->workers.finish(member(worker(1)));
  job_->idle_since = now_;
  now_ += timeouts_.silent + timeouts_.heartbeat - std::chrono::milliseconds(1);
  EXPECT_EQ(verdict(), "stay") << "the pacer may not have reported the last steps";
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(verdict(), "share rest among worker/0 worker/2");
  job_->workers.finish(member(worker(0)));
  job_->workers.finish(member(worker(2)));
  EXPECT_EQ(verdict(), "share rest among") << "all come back as other members";
}

// Another worker has to do the lost workers' work.
TEST_F(WorkersRule, TrainingWithoutWorkersGoesOnUnlessItStops) {
  config_.data.sharding = Sharding::kNone;
  make_job_at(Stage::kTrain);
  for (std::uint32_t i = 0; i < 3; ++i) job_->workers.lose(member(worker(i)));
  EXPECT_EQ(text(rules::training_end(*job_)), "stay");
  job_->condition.begin_stopping("stopped by ann");
  EXPECT_EQ(text(rules::training_end(*job_)), "settle");
}

}  // namespace
}  // namespace disttrain::chiefd
