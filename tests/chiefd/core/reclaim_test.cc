// The chief was restarted. The new chief continues the generation that the tasks already hold.
#include "tests/chiefd/core/reclaim_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(ReclaimTest, TasksThatHoldTheGenerationGoOnWithIt) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(status(job).global_step, 30u);
  EXPECT_EQ(count_sent<CreateShards>(), 1u);
  EXPECT_NE(event("reclaimed"), "no event of this kind");
}

// The chief recorded that the generation trains, and died before it recorded that the job runs.
TEST_F(ReclaimTest, JobWhoseChiefDiedBeforeItWroteThatItRunsRunsAndTakesCheckpoints) {
  const JobId job = train(with_checkpoints());
  report_pacer(30, 0);
  journal_.jobs.at(job).state = JobState::kStarting;
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(journal_.jobs.at(job).state, JobState::kRunning);
}

// The chief recorded that a rollback is over, and died before it recorded that the new generation trains.
TEST_F(ReclaimTest, JobWhoseChiefDiedBetweenRollbackAndTrainingStartsAgain) {
  const JobId job = train(with_checkpoints());
  report_pacer(30, 0);
  journal_.jobs.at(job).state = JobState::kPaused;
  journal_.jobs.at(job).is_training = false;
  restart_chief();
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  EXPECT_EQ(journal_.jobs.at(job).state, JobState::kStarting);
}

// People without permission may read the journal and the checkpoint folder, so the secret must be in neither.
TEST_F(ReclaimTest, SecretOfTheChannelsIsOnNoDiskAndIsToldByThePsTasks) {
  const JobId job = train(with_checkpoints());
  const std::uint64_t secret = sent<CreateShards>(ps(0)).back().token;
  const std::uint64_t mark = journal_.jobs.at(job).generation.mark;
  EXPECT_NE(secret, 0u);
  EXPECT_NE(mark, 0u);
  EXPECT_NE(secret, mark);
  for (const FolderWork& work : folder_work_)
    if (const auto* open = std::get_if<OpenFolder>(&work.work)) {
      EXPECT_EQ(open->mark, mark);
    }
  restart_chief_without({worker(1)});
  pass(seconds(3));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  sent_.clear();
  restart(worker(1));
  pass(seconds(1));
  ASSERT_FALSE(sent<OpenJob>(worker(1)).empty());
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().token, secret);
}

TEST_F(ReclaimTest, PsTasksThatTellDifferentSecretsAreMadeAnew) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  secrets_[ps(1)] += 1;
  restart_chief_without({});
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(secrets_[ps(0)], secrets_[ps(1)]);
}

TEST_F(ReclaimTest, PacersLateAnswerToTheChiefBeforeEndsNothing) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  const Roster roster = sent<SetRoster>(ps(0)).back().roster;
  restart_chief();
  sent_.clear();
  hello_again(ps(0));
  say(ps(0), RosterApplied{job, Generation(1), roster.version, Step(30), pacer_});
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (const std::uint32_t i : {0u, 1u}) {
    EXPECT_EQ(sent<StartJob>(worker(i)).size(), 1u);
    ASSERT_EQ(sent<PauseJob>(worker(i)).size(), 1u);
    EXPECT_FALSE(sent<PauseJob>(worker(i)).back().paused) << "the chief before may have paused it";
  }
  EXPECT_NE(event("reclaimed"), "no event of this kind");
}

TEST_F(ReclaimTest, LossBeforeTheJobTrainedIsNoRecovery) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  kill(worker(0));  // while it reads the data
  obedient_ = true;
  restart(worker(0));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  report_pacer(3144, 0);
  restart_chief_without({});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).global_step, 3144u);
  EXPECT_EQ(generation(job), Generation(1));
}

TEST_F(ReclaimTest, EndThatWasDecidedIsNotUndoneWhereSomeTasksHaveClosed) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config, 1);
  lend_all(job);
  report_pacer(100, 1);
  answers_close_ = false;
  finish(job, worker(0));
  ASSERT_FALSE(is_final(status(job).state));
  restart_chief();
  hello_all();
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
  EXPECT_EQ(status(job).global_step, 100u);
  EXPECT_NE(status(job).checkpoint, "");
}

TEST_F(ReclaimTest, JobThatHadNotBegunToTrainBeginsAgain) {
  start_chief(2, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  obedient_ = true;
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(ReclaimTest, QueueIsKept) {
  train(job_config("a"));
  const JobId second = submit(job_config("b"));
  restart_chief_without({});
  EXPECT_EQ(status(second).state, JobState::kQueued);
  EXPECT_EQ(submit(job_config("c")), JobId(3));
}

}  // namespace
}  // namespace disttrain::chiefd
