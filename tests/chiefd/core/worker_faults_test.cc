// A worker fails by its own fault, such as an exception of its trainer. If each worker fails in this way, the job
// fails.
#include "chiefd/core/job/facts/faults.h"
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class FaultsTest : public TrainingTest {
 protected:
  void raise(JobId job, TaskId task, const std::string& exception = "ValueError", int line = 7) {
    ++step_;
    say(task, TaskFailed{job, generation(job), ErrorCode::kUnavailable,
                         "the trainer ended with exit code 1 (step " + std::to_string(step_) +
                             "); its last lines:\n    File \"train.py\", line " + std::to_string(line) + ", in f\n  " +
                             exception + ": bad " + std::to_string(step_)});
  }
  int step_ = 0;
  void come_back(TaskId task) {
    restart(task);
    pass(seconds(3));
  }
};

TEST_F(FaultsTest, ExceptionThatEachWorkerRaisesFailsTheJob) {
  const JobId job = train(job_config("a"), 3);
  raise(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_TRUE(sent<CloseJob>(worker(0)).back().removed);
  raise(job, worker(2));
  raise(job, worker(1));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  const std::string reason = status(job).root_cause->reason;
  EXPECT_TRUE(reason.starts_with(
      "each worker has failed in the same way, so another try would fail too: the trainer ended with exit code 1"))
      << reason;
  EXPECT_TRUE(reason.ends_with("ValueError: bad 3")) << reason;
}

TEST_F(FaultsTest, OnlyWorkerMayTryOnceMore) {
  const JobId job = train(job_config("a"), 1);
  raise(job, worker(0));
  come_back(worker(0));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  raise(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(FaultsTest, WorkerThatMakesManyStepsBetweenBeginsAnew) {
  const JobId job = train(job_config("a"), 1);
  for (int times = 0; times < 4; ++times) {
    raise(job, worker(0));
    come_back(worker(0));
    heartbeats_[worker(0)].steps = Faults::kManySteps;
    pass(seconds(1));
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
}

// For example, a script that fails in each second step.
TEST_F(FaultsTest, WorkersThatMakeAFewStepsBetweenMayTryTwiceMore) {
  const JobId job = train(job_config("a"), 2);
  for (int times = 1; times <= 3; ++times)
    for (const TaskId task : {worker(0), worker(1)}) {
      ASSERT_EQ(status(job).state, JobState::kRunning) << times << ": " << status(job).reason;
      raise(job, task);
      if (times == 3 && task == worker(1)) break;
      come_back(task);
      heartbeats_[task].steps = 3;
      pass(seconds(1));
    }
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_TRUE(status(job).root_cause->reason.starts_with("each worker has failed in the same way"));
}

// Both may end because another task was lost.
TEST_F(FaultsTest, ExitCodesAreNoProofBeforeTheThirdOfEachWorker) {
  const JobId job = train(job_config("a"), 2);
  int times = 0;
  for (; times < 10 && status(job).state != JobState::kFailed; ++times)
    for (const TaskId task : {worker(0), worker(1)}) {
      say(task, TaskFailed{job, generation(job), ErrorCode::kUnavailable,
                           "computing a step: the trainer ended with exit code 3; it printed nothing"});
      pass(seconds(3));
      if (status(job).state != JobState::kFailed) come_back(task);
    }
  EXPECT_EQ(times, 3);
  EXPECT_TRUE(status(job).root_cause->reason.starts_with("each worker has failed in the same way"))
      << status(job).reason;
}

TEST_F(FaultsTest, OtherExceptionsAreCountedApart) {
  const JobId job = train(job_config("a"), 2);
  raise(job, worker(0), "ValueError", 7);
  raise(job, worker(1), "ValueError", 8);
  EXPECT_NE(status(job).state, JobState::kFailed);
}

TEST_F(FaultsTest, WorkerThatAloneFailsTwiceInARowIsLeftOut) {
  const JobId job = train(job_config("a"), 3);
  raise(job, worker(0), "ImportError", 1);
  come_back(worker(0));
  raise(job, worker(0), "ImportError", 1);
  come_back(worker(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
  EXPECT_TRUE(event("worker_refused").starts_with("worker/0 can't take part: the trainer ended"))
      << event("worker_refused");
}

// A function of job.on_evaluate() that raises does so on each worker and with the same parameters.
TEST_F(TrainingTest, ATrainerThatRaisesInTheFinalEvaluationFailsTheJobAfterEachWorkerHasTried) {
  evaluation_records_ = 100;
  JobConfig config = job_config("a");
  config.evaluate.files = "t*";
  const JobId job = train(config);
  while (records_of(sent<LeaseGrant>(worker(0))) + records_of(sent<LeaseGrant>(worker(1))) < 1000) ask(job, worker(0));
  report_pacer(100, 1);
  finish(job, worker(0));
  finish(job, worker(1));
  ASSERT_EQ(sent<Evaluate>(worker(0)).size(), 1u);
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kFailed, "no image 0"});
  EXPECT_EQ(status(job).state, JobState::kEvaluating);
  EXPECT_TRUE(sent<CloseJob>(worker(0)).back().removed);
  ASSERT_EQ(sent<Evaluate>(worker(1)).size(), 1u);
  say(worker(1), TaskFailed{job, Generation(1), ErrorCode::kFailed, "no image 1"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(1));
  EXPECT_EQ(status(job).root_cause->reason, "no image 1");
  EXPECT_EQ(status(job).recoveries, 0u);
  EXPECT_FALSE(sent<CloseJob>(worker(1)).empty());
}

TEST_F(TrainingTest, ATrainerThatRaisesInAnEvaluationWhileTheJobTrainsCostsOnlyItsWorker) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kFailed, "no image 0"});
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
}

}  // namespace
}  // namespace disttrain::chiefd
