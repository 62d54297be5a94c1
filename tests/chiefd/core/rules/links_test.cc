#include "chiefd/core/job/rules/links.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class LinksRule : public RuleTest {
 protected:
  void break_link(TaskId from, TaskId to) { job_->links.accuse(now_, {from, to}, timeouts_.unreachable, "timed out"); }
  // Without the link's own text.
  std::string verdict(TaskId from, TaskId to) {
    const Verdict verdict = rules::broken_link(*job_, tasks_, now_, member(from), {from, to});
    const std::string all = text(verdict);
    const std::string consequence = rules::consequence_of(verdict, member(from));
    return all.substr(0, all.find(':')) + (consequence.empty() ? "" : "; " + consequence);
  }
};

TEST_F(LinksRule, ByStage) {
  struct Case {
    Stage stage;
    TaskId from;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kCreate, ps(1), "recover (link); the job rolls back and chooses the owners of its shards again"},
      {Stage::kOpen, ps(1), "stay"},
      {Stage::kOpen, worker(0), "recover (link); the job rolls back and goes on without this link"},
      {Stage::kRoster, worker(0), "stay"},
      {Stage::kTrain, worker(0), "lose (link) worker/0; the worker is removed from the job until its link is back"},
      {Stage::kTrain, ps(1), "recover (link); the job rolls back and chooses the owners of its shards again"},
      {Stage::kSettle, worker(0), "stay"},
      {Stage::kEvaluate, worker(1), "stay"},
      {Stage::kEvaluate, worker(0), "evaluate without worker/0; another worker evaluates"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    job_->stage.await(now_, {member(worker(0))}, now_);
    break_link(one.from, ps(0));
    EXPECT_EQ(verdict(one.from, ps(0)), one.verdict) << "stage " << static_cast<int>(one.stage);
  }
}

TEST_F(LinksRule, PsThatMostWorkersCantReachIsWaitedFor) {
  make_job_at(Stage::kTrain);
  break_link(worker(0), ps(1));
  break_link(worker(1), ps(1));
  EXPECT_EQ(verdict(worker(1), ps(1)), "wait for links to ps/1");
}

// The rules for silent tasks apply.
TEST_F(LinksRule, PsThatTheChiefDoesntHearEither) {
  make_job_at(Stage::kTrain);
  break_link(worker(0), ps(1));
  now_ += kSilent + std::chrono::milliseconds(1);
  EXPECT_EQ(verdict(worker(0), ps(1)), "stay");
  hear(ps(1));
  EXPECT_NE(verdict(worker(0), ps(1)), "stay");
  job_->pauses.note_silent(ps(1), Silence{now_});
  EXPECT_EQ(verdict(worker(0), ps(1)), "stay");
}

TEST_F(LinksRule, WorkerThatHasFinishedStays) {
  make_job_at(Stage::kTrain);
  job_->workers.finish(member(worker(0)));
  break_link(worker(0), ps(1));
  EXPECT_EQ(verdict(worker(0), ps(1)), "stay");
}

}  // namespace
}  // namespace disttrain::chiefd
