// A job waits for tasks that are away (chiefd/core/job/rules/absences.h): with a limit it fails, without one it waits
// until they are back, and in both cases the chief reports the wait. A failed job is submitted again.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class AbsenceTest : public RecoveryTest {
 protected:
  std::size_t events(const std::string& kind) const {
    return static_cast<std::size_t>(std::count_if(journal_.events.begin(), journal_.events.end(),
                                                  [&kind](const EventRecord& event) { return event.kind == kind; }));
  }
  void kill_all_ps() {
    kill(ps(0));
    kill(ps(1));
  }
  void restart_all_ps() {
    restart(ps(0));
    restart(ps(1));
  }
  static JobConfig on_both_ps() {
    JobConfig config = job_config("a");
    config.job.shards = 2;
    return config;
  }
  static JobConfig resubmitted(std::uint32_t times = 3) {
    JobConfig config = with_checkpoints();
    config.job.on_failure = OnFailure::kResubmit;
    config.job.max_resubmits = times;
    config.job.ps_timeout = seconds(60);
    return config;
  }
  JobId submit_again(const std::string& job) {
    const std::size_t answered = answers_.size();
    refused_.reset();
    step(Resubmit{ClientId(5), job});
    return answers_.size() > answered ? answers_.back().job : JobId(0);
  }
};

TEST_F(AbsenceTest, JobWithoutALimitWaitsForItsPsUntilTheyAreBack) {
  const JobId job = train(on_both_ps());
  kill_all_ps();
  pass(minutes(70));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  EXPECT_NE(status(job).reason.find("waiting for ps/0, ps/1"), std::string::npos) << status(job).reason;
  EXPECT_NE(status(job).reason.find("job.ps_timeout sets no limit"), std::string::npos) << status(job).reason;
  ASSERT_EQ(status(job).absences.size(), 1u);
  EXPECT_EQ(status(job).absences[0].role, Role::kPs);
  EXPECT_FALSE(status(job).absences[0].limit);
  EXPECT_GE(now_ - status(job).absences[0].since, minutes(70) - seconds(1));
  EXPECT_EQ(events(kStillWaiting), 6u) << "after 1, 3, 7, 15, 31 and 63 minutes";
  EXPECT_NE(event(kStillWaiting).find("waiting for ps/0, ps/1"), std::string::npos) << event(kStillWaiting);
  restart_all_ps();
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_TRUE(status(job).absences.empty());
}

// Other ps tasks get 10 times heartbeat.timeout to take the shards.
TEST_F(AbsenceTest, WaitForPsIsToldToLastAsLongAsItDoes) {
  JobConfig config = on_both_ps();
  config.job.ps_timeout = seconds(5);
  const JobId job = train(config);
  kill_all_ps();
  pass(seconds(3));
  EXPECT_NE(event(kStillWaiting).find("the job fails if this takes 9.9 s (job.ps_timeout)"), std::string::npos)
      << event(kStillWaiting);
  pass(seconds(6));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(AbsenceTest, WaitForPsIsReportedBeforeItFailsTheJob) {
  JobConfig config = on_both_ps();
  config.job.ps_timeout = seconds(40);
  const JobId job = train(config);
  kill_all_ps();
  pass(seconds(19));
  EXPECT_EQ(events(kStillWaiting), 0u);
  pass(seconds(2));
  EXPECT_EQ(events(kStillWaiting), 1u);
  EXPECT_NE(event(kStillWaiting).find("the job fails if this takes 40 s (job.ps_timeout)"), std::string::npos)
      << event(kStillWaiting);
  pass(seconds(18));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("waiting for ps/0, ps/1"), std::string::npos) << status(job).reason;
  EXPECT_TRUE(status(job).reason.ends_with(" for 40 s (job.ps_timeout)")) << status(job).reason;
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(AbsenceTest, LimitCountsFromTheBeginningOfTheSilence) {
  JobConfig config = job_config("a");
  config.job.ps_timeout = seconds(30);
  config.job.stall_timeout = minutes(60);
  const JobId job = train(config);
  pass(minutes(10));  // without the limit the job would wait for a silent ps for a minute
  silence(ps(0));
  silence(ps(1));
  pass(seconds(29));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  // The silent ps tasks are lost now, and others get some time to take their shards.
  pass(seconds(15));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
}

TEST_F(AbsenceTest, EachRoleHasALimitOfItsOwn) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  config.job.workers_timeout = seconds(40);
  const JobId job = train(config);
  kill_all_ps();
  pass(minutes(10));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  kill(worker(0));
  pass(seconds(39));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  EXPECT_EQ(status(job).absences.size(), 2u);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("(job.workers_timeout)"), std::string::npos) << status(job).reason;
}

TEST_F(AbsenceTest, JobThatTrainsWaitsForWorkersUntilTheyAreBack) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  const JobId job = train(config);
  kill(worker(1));
  pass(minutes(30));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("job.workers_timeout sets no limit"), std::string::npos) << status(job).reason;
  EXPECT_GT(events(kStillWaiting), 2u);
  restart(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(AbsenceTest, JobThatBeginsWaitsForItsPs) {
  for (const bool is_limited : {false, true}) {
    journal_ = JournalState();
    start_chief(1, 1);
    hello(worker(0));
    JobConfig config = job_config(is_limited ? "limited" : "unlimited");
    if (is_limited) config.job.ps_timeout = seconds(40);
    const JobId job = submit(config);
    pass(minutes(10));
    if (is_limited) {
      EXPECT_EQ(status(job).state, JobState::kFailed);
      EXPECT_EQ(status(job).reason,
                "waiting for 1 of 2 tasks: ps/0 for 40 s (job.ps_timeout): start the missing tasks, or lower "
                "job.min_workers");
      continue;
    }
    EXPECT_EQ(status(job).state, JobState::kStarting);
    hello(ps(0), ++last_incarnation_);
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
}

TEST_F(AbsenceTest, WaitWithoutALimitEndsWhenAUserStopsTheJob) {
  const JobId job = train(job_config("a"));
  const JobId next = submit(job_config("b"));
  kill_all_ps();
  pass(minutes(10));
  step(chiefd::Stop{ClientId(2), "a", false, "ada"});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
  EXPECT_EQ(status(next).state, JobState::kStarting);
}

TEST_F(AbsenceTest, RestartedChiefGoesOnWaiting) {
  const JobId job = train(job_config("a"));
  kill_all_ps();
  pass(minutes(10));
  restart_chief();
  pass(minutes(10));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  hello_all();
  restart_all_ps();
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// ---- jobs that are submitted again

TEST_F(AbsenceTest, FailedAndStoppedJobsAreSubmittedAgain) {
  JobConfig config = with_checkpoints();
  config.job.ps_timeout = seconds(40);
  const JobId failed = train(config);
  kill_all_ps();
  pass(seconds(50));
  ASSERT_EQ(status(failed).state, JobState::kFailed);
  newest_ = restore_point(20);
  restart_all_ps();
  const JobId second = submit_again("a");
  ASSERT_NE(second, JobId(0)) << refused_->reason;
  EXPECT_EQ(status(failed).resubmitted_as, second);
  EXPECT_EQ(status(second).name, "a");
  pass(seconds(5));
  EXPECT_EQ(status(second).state, JobState::kRunning) << status(second).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/step");

  EXPECT_EQ(submit_again("a"), JobId(0));
  EXPECT_NE(refused_->reason.find("job a (number 2) is running"), std::string::npos) << refused_->reason;
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  ASSERT_EQ(status(second).state, JobState::kStopped);
  const JobId third = submit_again("2");
  EXPECT_EQ(status(third).state, JobState::kRunning) << status(third).reason;
  EXPECT_EQ(submit_again("1"), JobId(0)) << "a job of this name runs";
}

TEST_F(AbsenceTest, JobWithNothingToGoOnFromIsNotSubmittedAgain) {
  const JobId job = train(job_config("a"));
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  ASSERT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(submit_again("a"), JobId(0));
  EXPECT_NE(refused_->reason.find("takes no checkpoints"), std::string::npos) << refused_->reason;
  EXPECT_EQ(submit_again("b"), JobId(0));
  EXPECT_EQ(refused_->reason, "there is no job b");
}

TEST_F(AbsenceTest, ChiefSubmitsAFailedJobAgainUpToItsBound) {
  const JobId first = train(resubmitted(2));
  kill_all_ps();
  pass(seconds(70));
  ASSERT_EQ(status(first).state, JobState::kFailed) << status(first).reason;
  EXPECT_EQ(status(first).resubmitted_as, JobId(2));
  EXPECT_NE(event(kResubmitted).find("as job 2; this is number 1 of at most 2 (job.max_resubmits)"), std::string::npos)
      << event(kResubmitted);
  pass(seconds(65));  // job 2 waits in vain for its ps tasks, before it trains
  EXPECT_EQ(status(JobId(2)).state, JobState::kFailed) << status(JobId(2)).reason;
  EXPECT_EQ(status(JobId(2)).resubmitted_as, JobId(3));
  restart_all_ps();
  pass(seconds(5));
  EXPECT_EQ(status(JobId(3)).state, JobState::kRunning) << status(JobId(3)).reason;
  kill_all_ps();
  pass(seconds(70));
  EXPECT_EQ(status(JobId(3)).state, JobState::kFailed);
  EXPECT_FALSE(status(JobId(3)).resubmitted_as) << "job.max_resubmits is 2";
  EXPECT_EQ(cluster_->jobs().size(), 3u);
}

TEST_F(AbsenceTest, UsersResubmissionBeginsTheBoundAnew) {
  train(resubmitted(1));
  kill_all_ps();
  pass(seconds(140));
  ASSERT_EQ(status(JobId(2)).state, JobState::kFailed);
  EXPECT_FALSE(status(JobId(2)).resubmitted_as);
  EXPECT_EQ(submit_again("a"), JobId(3));
  pass(seconds(70));
  EXPECT_EQ(status(JobId(3)).resubmitted_as, JobId(4));
}

TEST_F(AbsenceTest, RestartedChiefSubmitsTheJobThatFailedWithItsPredecessor) {
  train(resubmitted());
  kill_all_ps();
  pass(seconds(70));
  ASSERT_EQ(cluster_->jobs().size(), 2u);
  // The former chief died after it wrote that the job has failed, and before it wrote the submission.
  journal_.jobs.erase(JobId(2));
  journal_.last_job = JobId(1);
  restart_chief();
  EXPECT_EQ(cluster_->jobs().size(), 2u);
  EXPECT_EQ(status(JobId(1)).resubmitted_as, JobId(2));
  restart_chief();
  EXPECT_EQ(cluster_->jobs().size(), 2u) << "only once";
  EXPECT_EQ(journal_.jobs.at(JobId(2)).submitted.resubmits, 1u);
}

TEST_F(AbsenceTest, JobThatBeganInAnEmptyFolderGoesOnFromItsOwnCheckpoints) {
  JobConfig config = resubmitted(1);
  config.checkpoint.restore = Restore::kNone;
  train(config);
  ASSERT_TRUE(newest_of<OpenFolder>().must_be_empty);
  kill_all_ps();
  pass(seconds(70));
  ASSERT_EQ(cluster_->jobs().size(), 2u);
  restart_chief();
  newest_ = restore_point(20);
  restart_all_ps();
  for (const std::uint32_t i : {0u, 1u}) restart(worker(i));
  pass(seconds(5));
  EXPECT_EQ(status(JobId(2)).state, JobState::kRunning) << status(JobId(2)).reason;
  EXPECT_FALSE(newest_of<OpenFolder>().must_be_empty);
}

TEST_F(AbsenceTest, JobThatFailedBecauseItsFolderWasNotEmptyFailsAgain) {
  JobConfig config = with_checkpoints();
  config.checkpoint.restore = Restore::kNone;
  start_chief(2, 2);
  hello_all();
  folder_error_ = Error{ErrorCode::kConfig, "has checkpoints, but checkpoint.restore is none"};
  ASSERT_EQ(status(submit(config)).state, JobState::kFailed);
  submit_again("a");
  EXPECT_TRUE(newest_of<OpenFolder>().must_be_empty);
}

TEST_F(AbsenceTest, JobThatCannotTrainIsNotSubmittedAgain) {
  records_ = 0;
  start_chief(2, 2);
  hello_all();
  const JobId job = submit(resubmitted());
  ASSERT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(cluster_->jobs().size(), 1u) << "its data has no records";
}

}  // namespace
}  // namespace disttrain::chiefd
