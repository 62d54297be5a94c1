#include "chiefd/core/job/rules/start.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

using What = Finding::What;

class StartRule : public RuleTest {
 protected:
  void make_gathering_job() {
    make_job();
    job_->stage.enter(Stage::kGather);
    job_->start.gathers_since = now_;
  }
  std::string gathered() { return text(rules::gathered(*job_, tasks_, now_)); }
};

TEST_F(StartRule, BeginsWithAllTasks) {
  make_gathering_job();
  EXPECT_EQ(gathered(), "describe with worker/0 worker/1 worker/2");
}

TEST_F(StartRule, WaitsForAPsWithoutEnd) {
  make_gathering_job();
  disconnect(ps(1));
  EXPECT_EQ(gathered(), "await: waiting for 1 of 5 tasks: ps/1");
  job_->start.complete_enough_at = now_ - std::chrono::hours(1);
  EXPECT_EQ(gathered(), "await: waiting for 1 of 5 tasks: ps/1");
}

TEST_F(StartRule, WaitsForOtherWorkersOnlyForAWhile) {
  config_.job.min_workers = 2;
  make_gathering_job();
  disconnect(worker(1));
  EXPECT_EQ(gathered(), "await others: waiting for 1 of 5 tasks: worker/1");
  job_->start.complete_enough_at = now_;
  now_ += 2 * kSilent - std::chrono::milliseconds(1);
  EXPECT_EQ(gathered(), "await others: waiting for 1 of 5 tasks: worker/1");
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(gathered(), "describe with worker/0 worker/2; began without worker/1 (host:7121)");
  disconnect(worker(2));
  EXPECT_EQ(gathered(), "await: waiting for 2 of 5 tasks: worker/1, worker/2");
}

TEST_F(StartRule, LeavesAWorkerOutThatWasLostAtAStartBefore) {
  make_gathering_job();
  job_->candidates.note_lost_at_start(worker(0));
  EXPECT_EQ(gathered(), "describe with worker/1 worker/2");
  config_.job.min_workers = 3;
  make_gathering_job();
  job_->candidates.note_lost_at_start(worker(0));
  EXPECT_EQ(gathered(), "describe with worker/0 worker/1 worker/2");
}

TEST_F(StartRule, AsksTheOthersIfAWorkerCantDescribe) {
  make_gathering_job();
  job_->stage.enter(Stage::kDescribe);
  job_->workers.choose({member(worker(0)), member(worker(1))});
  job_->start.could_not_describe = {{member(worker(0)), Error{ErrorCode::kData, "no data"}}};
  EXPECT_EQ(text(rules::cannot_describe(*job_, tasks_)), "ask worker/1 worker/2 of worker/1 worker/2");
  // They were asked, and worker/1 fails, too.
  job_->workers.choose_members({member(worker(1)), member(worker(2))});
  job_->start.could_not_describe.push_back({member(worker(1)), Error{ErrorCode::kData, "no data either"}});
  EXPECT_EQ(text(rules::cannot_describe(*job_, tasks_)), "ask of worker/2");
  job_->workers.choose_members({member(worker(2))});
  job_->start.could_not_describe.push_back({member(worker(2)), Error{ErrorCode::kData, "nor here"}});
  EXPECT_EQ(text(rules::cannot_describe(*job_, tasks_)), "fail: worker/0: no data");
}

TEST_F(StartRule, FindingsAtDescribe) {
  struct Case {
    What what;
    TaskId task;
    bool was_told_to_end;
    const char* verdict;
  };
  const Case cases[] = {
      {What::kJoined, ps(0), false, "stay"},
      {What::kLost, worker(2), false, "stay"},  // isn't in the roster
      {What::kLost, worker(0), false, "gather again (counts): worker/0: it ended"},
      {What::kLost, worker(0), true, "gather again: worker/0: it ended"},
      {What::kLost, worker(1), false, "gather again: worker/1: it ended"},  // isn't awaited
      {What::kSilent, worker(0), false, "gather again: worker/0: it ended"},
      {What::kLost, ps(1), false, "gather again (counts): ps/1: it ended"},
  };
  make_gathering_job();
  job_->stage.enter(Stage::kDescribe);
  job_->workers.choose({member(worker(0)), member(worker(1))});
  job_->stage.await(now_, {member(worker(0))}, now_);
  for (const Case& one : cases)
    EXPECT_EQ(text(rules::found_at_describe(*job_, finding(one.what, one.task, "it ended", one.was_told_to_end))),
              one.verdict);
}

TEST_F(StartRule, LossesAtDescribeAreBounded) {
  config_.job.max_restarts = 2;
  make_gathering_job();
  const Cause cause{worker(0), "it ended"};
  EXPECT_EQ(text(rules::lost_at_describe(*job_, cause, 0)), "start over");
  EXPECT_EQ(text(rules::lost_at_describe(*job_, cause, 2)), "start over");
  EXPECT_EQ(text(rules::lost_at_describe(*job_, cause, 3)),
            "fail: worker/0: it ended; this is loss number 3 within job.restart_window, and job.max_restarts is 2");
}

TEST_F(StartRule, WorkersThatCantOpenTheJob) {
  make_job_at(Stage::kOpen);
  EXPECT_EQ(text(rules::opened(*job_)), "set first roster");
  job_->candidates.note_lost_at_start(worker(1));
  job_->start.could_not_open[member(worker(1))] = {Error{ErrorCode::kFailed, "no memory"}, true};
  EXPECT_EQ(text(rules::opened(*job_)), "start with others (counts): worker/1: no memory");
  job_->start.could_not_open[member(worker(2))] = {Error{ErrorCode::kFailed, "no data"}, true};
  EXPECT_EQ(text(rules::opened(*job_)), "start with others (spared): worker/1: no memory")
      << "worker/2 wasn't lost at a start before";
}

TEST_F(StartRule, DataWithoutRecords) {
  config_.evaluate.files = "test*.csv";
  make_job();
  JobDescribed described;
  EXPECT_EQ(text(rules::described(*job_, described)),
            "fail: the data has no records: check data.files and data.records");
  described.train_records = 10;
  EXPECT_EQ(text(rules::described(*job_, described)), "fail: the evaluation data has no records: check evaluate.files");
  described.evaluation_records = 5;
  EXPECT_EQ(text(rules::described(*job_, described)), "stay");
}

}  // namespace
}  // namespace disttrain::chiefd
