#include "chiefd/core/job/rules/deadlines.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class DeadlinesRule : public RuleTest {
 protected:
  std::string verdict_at(Stage stage) {
    make_job_at(stage);
    return verdict();
  }
  std::string verdict() { return text(rules::at_deadline(*job_, tasks_, now_)); }
};

TEST_F(DeadlinesRule, EachStage) {
  config_.checkpoint.directory = "/data";
  config_.checkpoint.init_from = "/init";
  EXPECT_EQ(verdict_at(Stage::kGather), "wait again");
  EXPECT_EQ(verdict_at(Stage::kRegather), "wait again");
  EXPECT_EQ(verdict_at(Stage::kInit),
            "fail: /init (checkpoint.init_from) hasn't been read within 120 s: does its file system hang?");
  EXPECT_EQ(verdict_at(Stage::kFolder), "fail: /data couldn't be read for 120 s: does its file system hang?");
  EXPECT_EQ(verdict_at(Stage::kFind), "fail: /data couldn't be read for 120 s: does its file system hang?");
  EXPECT_EQ(verdict_at(Stage::kGeneration),
            "fail: the chief's own disk hasn't written the record of the job's generation within 120 s");
  EXPECT_EQ(verdict_at(Stage::kFinalCut),
            "fail: trained 0 steps, but the last checkpoint couldn't be taken: /data couldn't be read: does its file "
            "system hang?");
  EXPECT_EQ(verdict_at(Stage::kTrain), "stay");
  EXPECT_EQ(verdict_at(Stage::kClose), "leave behind");
  EXPECT_EQ(verdict_at(Stage::kReclaim), "stay");
}

TEST_F(DeadlinesRule, StageThatAwaitsATaskBlamesIt) {
  struct Case {
    Stage stage;
    TaskId awaited;
    const char* verdict;
  };
  const Case cases[] = {
      {Stage::kCreate, ps(1), "fail: ps/1: it heartbeats, but didn't create its shards within 120 s"},
      {Stage::kRoster, ps(0), "fail: ps/0: it heartbeats, but didn't take the roster within 120 s"},
      {Stage::kEvaluate, worker(2),
       "fail: worker/2: it heartbeats, but didn't finish the final evaluation within 120 s"},
      {Stage::kDescribe, worker(0),
       "describe without worker/0: it heartbeats, but didn't read the data and build the model within 120 s"},
      {Stage::kOpen, worker(1),
       "start without worker/1 (process): it heartbeats, but didn't open the job within 120 s"},
  };
  for (const Case& one : cases) {
    make_job_at(one.stage);
    job_->stage.await(now_, {member(one.awaited)}, now_);
    EXPECT_EQ(verdict(), one.verdict);
  }
}

TEST_F(DeadlinesRule, TooFewOthersCantOpenTheJobAlone) {
  config_.job.min_workers = 3;
  make_job_at(Stage::kOpen);
  job_->stage.await(now_, {member(worker(1))}, now_);
  EXPECT_EQ(verdict(), "fail: worker/1: it heartbeats, but didn't open the job within 120 s");
}

// The other tasks may wait for the pacer.
TEST_F(DeadlinesRule, PacerIsBlamedFirst) {
  make_job_at(Stage::kCreate);
  job_->stage.await(now_, {member(ps(0)), member(ps(1))}, now_);
  EXPECT_EQ(verdict(), "fail: ps/0: it heartbeats, but didn't create its shards within 120 s");
}

TEST_F(DeadlinesRule, ProgressOfOneAwaitedTaskExtendsTheStage) {
  make_job_at(Stage::kCreate);
  job_->stage.await(now_, {member(ps(0)), member(ps(1))}, now_);
  Heartbeat heartbeat;
  heartbeat.job = job_->setup.id;
  heartbeat.generation = job_->generation.number();
  heartbeat.work = 1;
  tasks_.hear(now_, member(ps(1)), heartbeat, findings_);
  heartbeat.work = 2;
  tasks_.hear(now_, member(ps(1)), heartbeat, findings_);
  EXPECT_EQ(verdict(), "extend");
  now_ += timeouts_.setup;
  EXPECT_EQ(verdict(), "fail: ps/0: it heartbeats, but didn't create its shards, and has stood still for 120 s");
}

TEST_F(DeadlinesRule, JobThatStopsDoesSoWithoutTheStepsOfAll) {
  for (const bool is_early : {false, true}) {
    make_job_at(Stage::kTrain);
    job_->workers.finish(member(worker(1)));
    job_->condition.begin_stopping("stopped by ann", is_early);
    EXPECT_EQ(verdict(), "stop without worker/0 worker/2: it didn't reach the end of its step in time");
  }
}

TEST_F(DeadlinesRule, JobThatStopsWaitsForASilentPs) {
  make_job_at(Stage::kTrain);
  job_->condition.begin_stopping("stopped by ann");
  job_->pauses.note_silent(ps(1), Silence{now_});
  EXPECT_EQ(verdict(), "wait again");
}

TEST_F(DeadlinesRule, JobThatStopsGivesAnEvaluationItsTime) {
  config_.job.stall_timeout = std::chrono::seconds(60);
  make_job_at(Stage::kTrain);
  job_->condition.begin_stopping("stopped by ann");
  job_->stage.wait_since(now_);
  Heartbeat heartbeat;
  heartbeat.phase = Phase::kEvaluate;
  tasks_.hear(now_, member(worker(0)), heartbeat, findings_);
  now_ += std::chrono::seconds(599);
  EXPECT_EQ(verdict(), "wait again");
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(verdict(), "stop without worker/0 worker/1 worker/2: it didn't reach the end of its step in time");
}

// The clock is the host's uptime.
TEST_F(DeadlinesRule, TaskWithoutProgressHasNoMoreTimeOnAHostThatHasJustBooted) {
  now_ = Instant(std::chrono::seconds(20));
  make_job_at(Stage::kClose);
  EXPECT_EQ(verdict(), "leave behind");
}

TEST_F(DeadlinesRule, LastReportOfThePacer) {
  make_job_at(Stage::kSettle);
  hear(ps(0));
  EXPECT_EQ(verdict(), "recover (counts): ps/0: it heartbeats, but didn't report its last step in time");
  job_->pauses.note_silent(ps(1), Silence{now_});
  EXPECT_EQ(verdict(), "wait again");
  make_job_at(Stage::kSettle);
  disconnect(ps(0));
  EXPECT_EQ(verdict(), "wait again");
}

}  // namespace
}  // namespace disttrain::chiefd
