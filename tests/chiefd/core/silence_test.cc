// Tasks that are silent or that stand still, and a chief that was paused itself.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(TrainingTest, PsThatIsHeardIsNotDeadThoughNobodyListensAtItsAddress) {
  const JobId job = train(job_config("a"));
  say(worker(0), Accusation{job, Generation(1), ps(0), "can't be reached"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, PsOfWhichOneShardThreadStandsStillIsSilentThoughItHeartbeats) {
  const JobId job = train(job_config("a"));
  for (std::uint64_t turn = 1; turn < 20; ++turn) {
    heartbeats_[ps(0)].turns = {turn, turn};
    pass(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(status(job).state, JobState::kRunning);
  for (std::uint64_t turn = 20; turn < 40; ++turn) {
    heartbeats_[ps(0)].turns = {turn, 19};
    pass(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("shard thread 1 has stood still"), std::string::npos) << status(job).reason;
  heartbeats_[ps(0)].turns = {40, 20};
  pass(std::chrono::milliseconds(100));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, ClosingJobDoesNotWaitForASilentTask) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  EXPECT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(status(job).reason, "killed by ada");
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(sent<CloseJob>(ps(0)).size(), 2u);
}

TEST_F(TrainingTest, SilentPsPausesTheJobAndItsReturnResumesIt) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos);
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, ChiefThatWasPausedItselfBlamesNobody) {
  const JobId job = train(job_config("a"));
  pass(seconds(1));
  now_ += seconds(20);
  step(Tick{});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, StallNamesTheTaskThatTheJobWaitsFor) {
  const JobId job = train(job_config("a"));
  report_pacer(5, 0);
  for (std::uint32_t i : {0u, 1u}) {
    heartbeats_[worker(i)].phase = i == 1 ? Phase::kCompute : Phase::kWait;
    heartbeats_[worker(i)].in_phase = seconds(30);
  }
  pass(seconds(59));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(1));
  EXPECT_NE(status(job).reason.find("worker/1 is in compute"), std::string::npos) << status(job).reason;
}

}  // namespace
}  // namespace disttrain::chiefd
