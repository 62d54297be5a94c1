// How the chief learns of a loss: silence, probes and complaints.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RecoveryTest, PsWhosePortOutlivedItsConnectionIsProbedAgain) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  step(ConnectionLost{member(ps(0)), "reset"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kNoAnswer});
  const std::size_t probed = probes().size();
  pass(milliseconds(100));
  ASSERT_EQ(probes().size(), probed + 1);
  EXPECT_EQ(status(job).state, JobState::kRunning);
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kPaused);
}

TEST_F(RecoveryTest, SilentPsWhoseConnectionStandsIsProbedUntilItIsProvedDead) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  ASSERT_FALSE(probes().empty());
  EXPECT_EQ(probes().back().member, member(ps(0)));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kNoAnswer});
  const std::size_t probed = probes().size();
  pass(milliseconds(100));
  ASSERT_EQ(probes().size(), probed + 1);
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_NE(status(job).reason.find("waiting for ps/0"), std::string::npos) << status(job).reason;
}

TEST_F(RecoveryTest, JobWaitsForASilentPsAsLongAsARollbackWouldCost) {
  const JobId job = train(job_config("a"));
  pass(seconds(20));
  silence(ps(0));
  pass(seconds(15));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_EQ(generation(job), Generation(1)) << "20 s of work would be lost";
  pass(seconds(15));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2)) << "waiting has cost more than they";
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().generation, Generation(2)) << "the other ps has its shards";
}

TEST_F(RecoveryTest, ComplaintAboutALostPsIsNotTheRootCause) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  EXPECT_EQ(status(job).state, JobState::kRunning);
  ASSERT_FALSE(probes().empty());
  silence(ps(0));
  pass(milliseconds(800));  // a dying ps may take a while, so the chief may see the lost connection late
  EXPECT_EQ(status(job).state, JobState::kRunning);
  step(ConnectionLost{member(ps(0)), "reset"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos);
  EXPECT_EQ(sent<CloseJob>(worker(0)).size(), 0u);
}

TEST_F(RecoveryTest, WorkerWhoseComplaintNothingExplainsLeavesTheJob) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
}

TEST_F(RecoveryTest, EachComplaintThatNothingExplainsCounts) {
  const JobId job = train(job_config("a"), 3);
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  say(worker(1), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(2))});
}

TEST_F(RecoveryTest, ShardsComplaintAfterAWorkersIsHeardToo) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  say(ps(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 lost shard 1"});
  pass(seconds(2));
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(RecoveryTest, ClientThatWantsACheckpointIsRefusedIfTheJobStaysPaused) {
  JobConfig config = with_checkpoints(Mode::kSync);
  config.job.shards = 2;
  train(config, 3);
  obedient_ = false;
  // No checkpoint begins before the pacer has confirmed the roster without worker/2.
  kill(worker(2));
  step(chiefd::Save{ClientId(2), ""});
  kill(ps(1));
  pass(seconds(15));
  EXPECT_FALSE(refused_);
  pass(seconds(10));
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
  EXPECT_NE(refused_->reason.find("no checkpoint could begin; the job is paused: "), std::string::npos)
      << refused_->reason;
}

TEST_F(RecoveryTest, PsThatComesAndGoesAtTheStartFailsTheJobInTheEnd) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  for (int i = 0; i < 10; ++i) {
    kill(ps(0));
    pass(seconds(1));
    restart(ps(0));
  }
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 11u);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

}  // namespace
}  // namespace disttrain::chiefd
