// Some work takes longer than any timeout. The chief waits for a task as long as the task makes progress.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class LongWorkTest : public RecoveryTest {
 protected:
  Duration setup() const { return derive_timeouts(config_.heartbeat.timeout).setup; }
  // Lets `duration` pass. Each of the tasks makes progress often enough that the chief doesn't count it as stuck.
  void work(std::initializer_list<TaskId> tasks, Duration duration) {
    for (Duration passed{}; passed < duration; passed += setup() / 2) {
      for (const TaskId task : tasks) ++heartbeats_[task].work;
      pass(setup() / 2);
    }
  }
  void stand_still() { pass(setup() + seconds(1)); }
  // Starts a job. The chief orders the ps tasks to create their shards, and no ps answers.
  JobId begin_creating() {
    start_chief(2, 2);
    hello_all();
    obedient_ = false;
    JobConfig config = job_config("a");
    config.job.shards = 4;
    const JobId job = submit(config);
    say(worker(0), JobDescribed{job, model_, records_, 0});
    EXPECT_FALSE(sent<CreateShards>(ps(0)).empty());
    return job;
  }
};

TEST_F(LongWorkTest, DataSetMayTakeAsLongAsItTakes) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  work({worker(0)}, 5 * setup());
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  obedient_ = true;
  say(worker(0), JobDescribed{job, model_, records_, 0});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LongWorkTest, WorkerThatStandsStillAtItsDataIsNamed) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  const JobId job = submit(config);
  work({worker(0)}, 3 * setup());
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(0));
  EXPECT_NE(status(job).reason.find("has stood still for 120 s"), std::string::npos) << status(job).reason;
}

// A starting job waits for its tasks for a limited time. Here a worker reads the data for longer than that. If a ps is
// lost meanwhile, the job gives it as much time as a starting job gives its tasks.
TEST_F(LongWorkTest, TaskLostAfterALongReadIsWaitedFor) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  work({worker(0)}, 3 * setup());
  kill(ps(1));
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  obedient_ = true;
  restart(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LongWorkTest, RestoreMayTakeAsLongAsItTakesAlsoForThoseWhoWaitForThePacer) {
  const JobId job = begin_creating();
  work({ps(0)}, 5 * setup());
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  obedient_ = true;
  for (const std::uint32_t i : {0u, 1u}) say(ps(i), ShardsCreated{job, generation(job)});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LongWorkTest, PsThatStandsStillIsNamedAndNotTheOneThatWaitsForIt) {
  const JobId job = begin_creating();
  work({ps(0), ps(1)}, 3 * setup());
  ++heartbeats_[ps(1)].work;
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(LongWorkTest, PsThatStandsStillIsNamedWhenThePacerIsThere) {
  const JobId job = begin_creating();
  say(ps(0), ShardsCreated{job, generation(job)});
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(1));
}

// Progress counts only if it is made for the current generation.
TEST_F(LongWorkTest, WorkForAnotherJobDoesNotCount) {
  const JobId job = begin_creating();
  heartbeats_[ps(0)].generation = Generation(77);
  work({ps(0)}, 2 * setup());
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LongWorkTest, WorkersMayReadForLongBeforeTheyOpen) {
  const JobId job = begin_creating();
  for (const std::uint32_t i : {0u, 1u}) say(ps(i), ShardsCreated{job, generation(job)});
  say(worker(0), JobOpened{job, generation(job)});
  work({worker(1)}, 5 * setup());
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kPaused) << "the job starts again without it";
  EXPECT_NE(event("worker_refused").find("worker/1 can't take part: it heartbeats, but didn't open the job"),
            std::string::npos)
      << event("worker_refused");
}

TEST_F(LongWorkTest, WorkerThatJoinsMayReadForLong) {
  JobConfig config = job_config("a");
  config.job.stall_timeout = std::chrono::hours(1);
  const JobId job = train(config, 3);
  kill(worker(2));
  obedient_ = false;
  restart(worker(2));
  say(worker(2), JobDescribed{job, model_, records_, 0});
  obedient_ = true;
  pass(seconds(5));
  ASSERT_FALSE(sent<OpenJob>(worker(2)).empty());
  obedient_ = false;
  for (int i = 0; i < 6; ++i) {
    report_pacer(pacer_.global_step.value + 1, 0);
    work({worker(2)}, setup() / 2);
  }
  EXPECT_EQ(event("worker_lost").find("didn't open the job in time"), std::string::npos) << event("worker_lost");
  for (int i = 0; i < 3; ++i) {
    report_pacer(pacer_.global_step.value + 1, 0);
    pass(setup() / 2);
  }
  EXPECT_NE(event("worker_lost").find("didn't open the job in time"), std::string::npos) << event("worker_lost");
}

TEST_F(LongWorkTest, RecoveryWaitsForWorkersThatStillRead) {
  JobConfig config = job_config("a");
  config.job.workers_timeout = setup();
  const JobId job = train(config, 1);
  kill(worker(0));
  kill(ps(0));
  restart(ps(0));
  obedient_ = false;
  restart(worker(0));
  work({worker(0)}, 5 * setup());
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  EXPECT_NE(event(kStillWaiting).find("the job fails if the workers that get ready make no progress for"),
            std::string::npos)
      << event(kStillWaiting);
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LongWorkTest, JobThatIsShortOfWorkersWaitsForThoseThatStillRead) {
  JobConfig config = job_config("a");
  config.job.workers_timeout = setup();
  const JobId job = train(config, 1);
  kill(worker(0));
  obedient_ = false;
  restart(worker(0));
  work({worker(0)}, 5 * setup());
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  stand_still();
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(LongWorkTest, FinalEvaluationMayTakeAsLongAsItTakes) {
  JobConfig config = job_config("a");
  config.evaluate.files = "t";
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  lend_all(job);
  report_pacer(100, 1);
  finish(job, worker(0));
  ASSERT_EQ(status(job).state, JobState::kEvaluating) << status(job).reason;
  work({worker(0)}, 10 * setup());
  EXPECT_EQ(status(job).state, JobState::kEvaluating) << status(job).reason;
}

TEST_F(LongWorkTest, FilesOfACheckpointMayTakeAsLongAsTheyTake) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  config.checkpoint.every_steps = 100;
  config.job.stall_timeout = std::chrono::hours(1);
  const JobId job = train(config);
  obedient_ = false;
  report_pacer(100, 0);
  work({ps(1)}, 12 * setup());
  EXPECT_TRUE(sent<AbandonCheckpoint>(ps(0)).empty()) << event("checkpoint_failed");
  stand_still();
  EXPECT_FALSE(sent<AbandonCheckpoint>(ps(0)).empty()) << status(job).reason;
}

}  // namespace
}  // namespace disttrain::chiefd
