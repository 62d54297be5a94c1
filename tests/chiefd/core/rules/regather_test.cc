#include "chiefd/core/job/rules/regather.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class RegatherRule : public RuleTest {
 protected:
  // The job has lost ps/1's process, and rolls back since now_. All workers are prepared.
  void make_rollback() {
    make_job_at(Stage::kRegather);
    for (const std::uint32_t index : {0, 1, 2}) job_->candidates.note_prepared(member(worker(index)));
    job_->rollbacks.begin(Rollback{{ps(1), "its process has ended"}, now_, now_, now_, Step(7)});
  }
  void break_link(TaskId from, TaskId to) { job_->links.accuse(now_, {from, to}, timeouts_.unreachable, "timed out"); }
  std::string owners() { return text(rules::next_owners(*job_, tasks_, now_)); }
  std::string roster() { return text(rules::next_roster(*job_, tasks_, now_)); }
  std::string begins() { return text(rules::next_begins(*job_, tasks_, now_)); }
  std::string missing(const Verdict& owners) { return text(rules::next_missing(*job_, tasks_, now_, owners)); }
  std::string invitations() { return texts(rules::next_invitations(*job_, tasks_, now_)); }
  static std::string texts(const std::vector<Verdict>& verdicts) {
    std::string all;
    for (const Verdict& verdict : verdicts) all += (all.empty() ? "" : "; ") + text(verdict);
    return all;
  }
  void pass_silent_ps() {
    now_ += timeouts_.silent_ps;
    for (const std::uint32_t index : {0, 1, 2}) hear(worker(index));
    hear(ps(0));
  }
};

TEST_F(RegatherRule, SamePsOwnTheShardsIfTheyAreBack) {
  make_rollback();
  EXPECT_EQ(owners(), "keep owners");
  disconnect(ps(1));
  EXPECT_EQ(owners(), "lack ps");
  connect(ps(1));
  EXPECT_EQ(owners(), "keep owners");
}

TEST_F(RegatherRule, OtherPsTakeTheShardsOfOneThatStaysAway) {
  config_.job.shards = 1;
  make_rollback();
  disconnect(ps(0));
  now_ += timeouts_.silent_ps - std::chrono::milliseconds(1);
  EXPECT_EQ(owners(), "lack ps");
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(owners(), "place on ps/1");
}

TEST_F(RegatherRule, JobWaitsIfNoOtherPsCanTakeTheShards) {
  make_rollback();
  disconnect(ps(1));
  pass_silent_ps();
  const Verdict verdict = rules::next_owners(*job_, tasks_, now_);
  EXPECT_EQ(text(verdict).substr(0, 9), "lack ps: ") << text(verdict);
  EXPECT_NE(missing(verdict).find("await tasks: waiting for ps/1"), std::string::npos) << missing(verdict);
  EXPECT_NE(missing(verdict).find("(the other ps tasks can't take the shards: "), std::string::npos);
}

TEST_F(RegatherRule, OtherPsAreNamedOnlyIfThereAreOthers) {
  make_rollback();
  disconnect(ps(0));
  disconnect(ps(1));
  pass_silent_ps();
  const Verdict both = rules::next_owners(*job_, tasks_, now_);
  EXPECT_EQ(text(both), "lack ps");
  EXPECT_EQ(missing(both), "await tasks: waiting for ps/0, ps/1");

  config_.job.shards = 1;
  make_rollback();  // only ps/0 owns a shard
  disconnect(ps(0));
  disconnect(ps(1));
  pass_silent_ps();
  const Verdict one = rules::next_owners(*job_, tasks_, now_);
  EXPECT_EQ(text(one), "lack ps: no other ps is connected");
  EXPECT_EQ(missing(one), "await tasks: waiting for ps/0 (no other ps is connected)");
}

TEST_F(RegatherRule, OnlyConnectedPsThatNobodyReachesIsNoOtherPs) {
  config_.job.shards = 1;
  make_rollback();
  disconnect(ps(1));
  for (const std::uint32_t index : {0, 1, 2}) break_link(worker(index), ps(0));
  pass_silent_ps();
  const std::string text = missing(rules::next_owners(*job_, tasks_, now_));
  EXPECT_NE(text.find(" (the other tasks can't reach any connected ps: check its address, and firewalls)"),
            std::string::npos)
      << text;
}

// Two ps tasks connect to each other again only in another generation.
TEST_F(RegatherRule, BrokenLinkBetweenPsIsTriedAgain) {
  make_rollback();
  break_link(ps(1), ps(0));
  EXPECT_EQ(owners(), "lack ps");
  now_ += timeouts_.silent_ps;
  EXPECT_EQ(owners(), "keep owners; forget links");
}

TEST_F(RegatherRule, JobGoesOnWithTheWorkersThatReachAPs) {
  config_.job.min_workers = 1;
  make_rollback();
  break_link(worker(0), ps(1));
  break_link(worker(1), ps(1));
  EXPECT_EQ(owners(), "lack ps");
  now_ += timeouts_.silent_ps;
  EXPECT_EQ(owners(), "keep owners");
  EXPECT_EQ(roster(), "choose worker/2");
}

TEST_F(RegatherRule, EachWorkerIsInvitedOrLetIn) {
  config_.job.max_restarts = 1;
  make_rollback();
  EXPECT_EQ(invitations(), "let in worker/0; let in worker/1; let in worker/2");
  job_->candidates.unprepare(member(worker(0)));
  disconnect(worker(1));
  for (int i = 0; i < 2; ++i) job_->worker_losses.note_lost("worker/2", now_, "its process has ended");
  EXPECT_EQ(invitations(),
            "invite worker/0; keep out worker/2: can't rejoin the job: it was lost 2 times within job.restart_window, "
            "and job.max_restarts is 1; the last loss: its process has ended");
}

TEST_F(RegatherRule, WorkerThatReachesNoOwnerIsAskedAgainLater) {
  make_rollback();
  job_->candidates.unprepare(member(worker(0)));
  break_link(worker(0), ps(0));
  break_link(worker(1), ps(0));  // it is prepared, and asked elsewhere
  EXPECT_EQ(invitations(), "invite worker/0; let in worker/2");
  job_->candidates.ask_again_after(worker(0), now_ + std::chrono::seconds(1));
  EXPECT_EQ(invitations(), "let in worker/2");
}

TEST_F(RegatherRule, RosterHasTheWorkersThatAreReady) {
  config_.job.min_workers = 2;
  make_rollback();
  EXPECT_EQ(roster(), "choose worker/0 worker/1 worker/2");
  job_->candidates.note_lost_at_start(worker(0));
  EXPECT_EQ(roster(), "choose worker/1 worker/2");
  job_->candidates.unprepare(member(worker(1)));
  EXPECT_EQ(roster(), "choose worker/0 worker/2") << "too few are left without it";
  job_->candidates.unprepare(member(worker(2)));
  EXPECT_EQ(roster(), "stay");
  EXPECT_EQ(missing(KeepOwners{}).substr(0, 24), "await tasks: waiting for") << missing(KeepOwners{});
}

TEST_F(RegatherRule, JobThatWaitsForLostWorkersTakesEachRank) {
  config_.job.on_worker_loss = OnWorkerLoss::kWait;
  config_.data.sharding = Sharding::kNone;
  make_rollback();
  job_->workers.fix_ranks({member(worker(1)), member(worker(0))});
  EXPECT_EQ(roster(), "choose worker/1 worker/0");
  disconnect(worker(0));
  EXPECT_EQ(roster(), "stay");
}

TEST_F(RegatherRule, JobWithoutHopeFails) {
  config_.job.max_restarts = 1;
  config_.job.min_workers = 3;
  make_rollback();
  for (int i = 0; i < 2; ++i) job_->worker_losses.note_lost("worker/2", now_, "its process has ended");
  EXPECT_EQ(roster().substr(0, 15), "fail: worker/2:") << roster();
}

TEST_F(RegatherRule, WorkersWithoutAPlaceStayOut) {
  make_rollback();
  EXPECT_EQ(text(rules::next_places(*job_, tasks_)), "make places for 3");
  EXPECT_EQ(texts(rules::next_left_out(*job_, tasks_)), "");
  job_->generation.make_places(1);
  const std::string out = texts(rules::next_left_out(*job_, tasks_));
  EXPECT_EQ(out.substr(0, 18), "keep out worker/2:") << out;
  EXPECT_NE(out.find("; keep out worker/1:"), std::string::npos) << out;
  EXPECT_NE(out.find("; choose worker/0"), std::string::npos) << out;
}

TEST_F(RegatherRule, BeginsAfterTheBackOff) {
  make_rollback();
  EXPECT_EQ(begins(), "begin next");
  Rollback later = *job_->rollbacks.current();
  later.not_before = now_ + std::chrono::seconds(1);
  job_->rollbacks.begin(later);
  EXPECT_EQ(begins(), "stay");
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(begins(), "begin next");
}

}  // namespace
}  // namespace disttrain::chiefd
