// Tasks that don't answer an order to fence, or don't report a last step.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A bug of the ps may have lost the order to fence. A new process of the ps may carry the order out, so the job
// recovers; job.max_restarts bounds the retries.
TEST_F(RecoveryTest, PsThatDoesNotAnswerAFenceIsALossThatCounts) {
  const JobId job = train(job_config("a"));
  answers_fence_ = false;
  kill(worker(0));
  pass(milliseconds(5900));
  EXPECT_EQ(generation(job), Generation(1));
  pass(seconds(1));
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_NE(event("loss_counted").find("ps/0: it heartbeats, but didn't fence worker/0"), std::string::npos)
      << event("loss_counted");
}

TEST_F(RecoveryTest, PsThatNeverAnswersAFenceIsTheRootCauseInTheEnd) {
  const JobId job = train(without_restarts());
  answers_fence_ = false;
  kill(worker(0));
  pass(seconds(7));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

// The ps missed the order to fence, because its connection broke. While it isn't connected, the chief suspects its own
// host, so the ps doesn't count as silent.
TEST_F(RecoveryTest, PsWhoseConnectionIsAwayHasAllItsTimeToFenceOnceItIsBack) {
  const JobId job = train(without_restarts());
  answers_fence_ = false;
  kill(worker(0));
  pass(seconds(5));
  step(ConnectionLost{member(ps(0)), "reset"});
  pass(milliseconds(2000));
  hello_again(ps(0));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 2u);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, TimeOfTheJournalIsNotCountedAgainstAPsThatFences) {
  const JobId job = train(without_restarts());
  disk_is_held_ = true;
  kill(worker(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  answers_fence_ = false;
  release_disk();
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PsThatReturnsHasTheWholeTimeToFence) {
  const JobId job = train(without_restarts());
  pass(seconds(30));
  answers_fence_ = false;
  silence(ps(0));
  pass(seconds(2));
  kill(worker(0));
  pass(seconds(8));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  hear_again(ps(0));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PacerThatDoesNotReportItsLastStepIsALossThatCounts) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  finish(job, worker(0));
  pass(seconds(5));
  EXPECT_FALSE(cluster_->has_ended(job)) << "a count that may be old isn't taken for the last";
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(event("loss_counted").find("ps/0: it heartbeats, but didn't report its last step"), std::string::npos)
      << event("loss_counted");
}

TEST_F(RecoveryTest, PacerWhoseConnectionIsAwayHasAllItsTimeToReportOnceItIsBack) {
  const JobId job = train(without_restarts(), 1);
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  finish(job, worker(0));
  pass(seconds(5));
  step(ConnectionLost{member(ps(0)), "reset"});
  pass(seconds(2));
  hello_again(ps(0));
  pass(seconds(5));
  EXPECT_FALSE(is_final(status(job).state)) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, PacerThatReturnsHasAllItsTimeToReport) {
  const JobId job = train(without_restarts(), 1);
  pass(seconds(30));
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  silence(ps(0));
  finish(job, worker(0));
  pass(milliseconds(5800));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  hear_again(ps(0));
  pass(seconds(5));
  EXPECT_FALSE(is_final(status(job).state)) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

}  // namespace
}  // namespace disttrain::chiefd
