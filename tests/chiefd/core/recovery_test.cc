// The job loses a ps and begins another generation.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RecoveryTest, JobWaitsForALostPsAndBeginsAgainWithIt) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos) << status(job).reason;
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(status(job).global_step, 30u) << "what it had reached";
  pacer_ = PacerReport();
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "");
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().generation, Generation(2));
  EXPECT_NE(event("rolled_back").find("30 steps are lost"), std::string::npos) << event("rolled_back");
  EXPECT_EQ(status(job).steps_lost, 30u);
}

TEST_F(RecoveryTest, JobIsAtItsRestoreUntilTheFirstStepAfterIt) {
  const JobId job = train(job_config("a"));
  EXPECT_EQ(status(job).part, JobPart::kInit);
  EXPECT_FALSE(status(job).progress_age);
  report_pacer(30, 0);
  EXPECT_EQ(status(job).part, JobPart::kTrain);
  EXPECT_EQ(status(job).progress_age, Duration::zero());
  kill(ps(0));
  EXPECT_EQ(status(job).part, JobPart::kRestore);
  pacer_ = PacerReport();
  restart(ps(0));
  EXPECT_EQ(status(job).part, JobPart::kRestore);
  report_pacer(1, 0);
  EXPECT_EQ(status(job).part, JobPart::kTrain);
}

TEST_F(RecoveryTest, EveryShardBeginsWithTheNewestCheckpointAlsoAtLivingPsTasks) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  report_pacer(30, 0);
  newest_ = restore_point(20);
  kill(ps(1));
  pacer_ = newest_->pacer;
  restart(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (const std::uint32_t i : {0u, 1u})
    EXPECT_EQ(sent<CreateShards>(ps(i)).back().restore_path, "/checkpoints/a/step") << i;
  EXPECT_NE(event("rolled_back").find("10 steps are lost"), std::string::npos) << event("rolled_back");
  EXPECT_EQ(step_of_event("loss_counted"), 30u);
  EXPECT_EQ(step_of_event("rolled_back"), 20u);
  EXPECT_EQ(status(job).steps_lost, 10u);
  EXPECT_EQ(status(job).checkpoints.restore.counts().front(), 1u);
}

TEST_F(RecoveryTest, RollbackDoesNotTakeBackReportedExamples) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  pacer_.examples = 300;
  report_pacer(30, 0);
  EXPECT_EQ(status(job).examples_heard, 300u);
  newest_ = restore_point(20);
  newest_->pacer.examples = 200;
  const PacerReport saved = newest_->pacer;
  kill(ps(1));
  pass(milliseconds(300));  // until the rollback, the pacer still reports 300 examples
  EXPECT_EQ(status(job).examples_heard, 300u);
  pacer_ = saved;
  restart(ps(1));
  EXPECT_EQ(status(job).examples, 200u);
  EXPECT_EQ(status(job).examples_heard, 300u);
  pacer_.examples = 210;
  report_pacer(21, 0);
  EXPECT_EQ(status(job).examples_heard, 310u);
}

TEST_F(RecoveryTest, TimeOfTrainingCountsOnceWhileThePacerGoesOnReporting) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  pacer_.training = seconds(50);
  report_pacer(30, 0);
  EXPECT_EQ(status(job).seconds, 50.0);
  kill(ps(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).seconds, 50.0);
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  ASSERT_TRUE(journal_.jobs.at(job).ended);
  EXPECT_EQ(journal_.jobs.at(job).ended->training.time, seconds(50));
}

TEST_F(RecoveryTest, GenerationIsDurableBeforeItsShardsAreCreated) {
  train(job_config("a"));
  disk_is_held_ = true;
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(1));
  release_disk();
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(2));
}

TEST_F(RecoveryTest, GenerationIsBeyondAllThatTheFolderHolds) {
  newest_ = restore_point(20);
  newest_->generation = Generation(7);
  const JobId job = train(with_checkpoints());
  EXPECT_EQ(generation(job), Generation(8));
}

TEST_F(RecoveryTest, ShardsOfAPsThatStaysAwayAreTakenByTheOthers) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  pass(seconds(4));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().owners.front().ps, member(ps(1)));
}

TEST_F(RecoveryTest, JobWhosePsAllStayAwayFailsAtItsDeadline) {
  JobConfig config = job_config("a");
  config.job.ps_timeout = seconds(120);
  const JobId job = train(config);
  kill(ps(0));
  kill(ps(1));
  pass(seconds(119));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, LossOnTheWayBeginsAgainWithTheNextGeneration) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  EXPECT_EQ(generation(job), Generation(2));
  kill(ps(0));
  obedient_ = true;
  restart(ps(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(3));
}

TEST_F(RecoveryTest, JobDoesNotWaitForAWorkerLostWithThePs) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(RecoveryTest, RecoveriesWithoutAStepBetweenThemWaitLongerEachTime) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  restart(ps(0));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << "it waits";
  pass(milliseconds(300));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  report_pacer(5, 0);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << "there was progress: at once again";
}

// A recovery waits if the job has made no progress since the previous one. A newer checkpoint counts as progress, even
// if the job hasn't reached its former step again.
TEST_F(RecoveryTest, RecoveryAfterANewerCheckpointDoesNotWait) {
  const JobId job = train(with_checkpoints());
  report_pacer(50, 0);
  step(chiefd::Save{ClientId(2), ""});
  report_pacer(100, 0);
  const auto lose = [this] {
    kill(ps(0));
    restart(ps(0));
  };
  lose();
  ASSERT_EQ(status(job).state, JobState::kRunning);
  report_pacer(50, 0);
  step(chiefd::Save{ClientId(2), ""});
  lose();
  EXPECT_EQ(status(job).state, JobState::kPaused) << "that checkpoint is of the same step";
  pass(milliseconds(300));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  report_pacer(60, 0);
  step(chiefd::Save{ClientId(2), ""});
  lose();
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(RecoveryTest, EvaluationOfRolledBackStepsIsForgotten) {
  const JobId job = train(with_checkpoints());
  report_pacer(100, 0);
  newest_ = restore_point(20);
  const auto evaluate_at = [&](std::uint64_t step) {
    Evaluated evaluated;
    evaluated.job = job;
    evaluated.generation = generation(job);
    evaluated.step = Step(step);
    evaluated.examples = 10;
    say(worker(0), evaluated);
  };
  evaluate_at(20);
  kill(ps(0));
  restart(ps(0));
  ASSERT_TRUE(status(job).evaluation) << "of the step that it goes on from";
  evaluate_at(50);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  ASSERT_EQ(generation(job), Generation(3));
  EXPECT_FALSE(status(job).evaluation);
}

}  // namespace
}  // namespace disttrain::chiefd
