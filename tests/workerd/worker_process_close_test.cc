// How a worker ends a job: it may have to interrupt a computation, to wait for it, or to give up on it.
#include <gtest/gtest.h>

#include "tests/workerd/worker_process_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerProcessTest, StepThreadThatHangsInAClosedJobEndsTheWorker) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "killed"});
  run_until(loop_, [this] { return is_hung_; });
  run_until(loop_, [this] { return chief_->peers.back()->closed; });
}

TEST_F(WorkerProcessTest, StepThreadThatHangsWhenTheChiefBeginsAnotherJobEndsTheWorker) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  run_until(loop_, [this] { return is_hung_; });
}

TEST_F(WorkerProcessTest, AnotherJobInterruptsTheOneThatIsStillPrepared) {
  makes_none_ = true;
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  run_until(loop_, [this] { return !makes_none_; });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().job, JobId(6));
  EXPECT_EQ(chief_->heard<JobClosed>().at(0).job, JobId(5));
  EXPECT_TRUE(chief_->heard<TaskFailed>().empty());
}

TEST_F(WorkerProcessTest, TheEndOfANewerJobStillInterruptsAnOlderOne) {
  makes_none_ = true;
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  run_until(loop_, [this] { return !makes_none_; });
  chief_->worker().tell(DescribeJob{JobId(6), job_config()});
  chief_->worker().tell(CloseJob{JobId(6), Generation(), "killed"});
  run_until(loop_, [this] { return chief_->heard<JobClosed>().size() == 2; });
  EXPECT_EQ(chief_->heard<JobClosed>().at(1).job, JobId(6));
}

TEST_F(WorkerProcessTest, WorkerThatIsRemovedComesBackWhenItHasReleasedTheJob) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  const std::size_t hellos = chief_->hellos.size();
  for (int i = 0; i < 3; ++i) chief_->worker().tell(CloseJob{JobId(5), Generation(1), "lost", true});
  chief_->messages.clear();
  chief_->wait_for<Heartbeat>();
  EXPECT_EQ(chief_->hellos.size(), hellos) << "its step thread still holds the job";
  open_gate();
  run_until(loop_, [this, hellos] { return chief_->hellos.size() > hellos; });
  EXPECT_NE(chief_->hellos.back().member.incarnation, Incarnation(42));
  chief_->wait_for<Heartbeat>();
  EXPECT_EQ(chief_->hellos.size(), hellos + 1) << "once";
  EXPECT_FALSE(is_hung_);
}

TEST_F(WorkerProcessTest, CloseInTheMiddleOfAComputationReleasesEverythingAfterIt) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "killed"});
  open_gate();
  chief_->wait_for<JobClosed>();
  EXPECT_TRUE(chief_->heard<WorkerFinished>().empty());
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
}

TEST_F(WorkerProcessTest, StopEndsAtThePushBoundary) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->worker().tell(StopJob{JobId(5), Generation(1)});
  open_gate();
  const WorkerFinished finished = chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.versions[0], finished.steps);
  EXPECT_EQ(shards_.versions[1], finished.steps);
}

TEST_F(WorkerProcessTest, ClosingAnOlderJobDoesNotHurryTheOneThatEvaluates) {
  start_worker();
  lend_all();
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  chief_->worker().tell(CloseJob{JobId(4), Generation(1), "long ago"});
  EXPECT_EQ(chief_->wait_for<Evaluated>().examples, 20U);
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(4));
}

}  // namespace
}  // namespace disttrain::workerd
