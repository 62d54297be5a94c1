// The figures that the chief shows for each task: examples per second, loss, lag, and the time in each phase or shard.
#include <gtest/gtest.h>

#include <limits>

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TaskFiguresTest : public TrainingTest {
 protected:
  TaskStatus task_status(JobId job, TaskId id) {
    for (const TaskStatus& task : status(job).tasks)
      if (task.task == id) return task;
    ADD_FAILURE() << "no " << to_string(id);
    return {};
  }
  TaskFigures figures(JobId job, TaskId id) { return task_status(job, id).figures; }
  // From its next heartbeat on, the task reports `steps` steps. A worker reports 10 examples for each step.
  void reach(TaskId id, std::uint64_t steps) {
    heartbeats_[id].steps = steps;
    if (id.role == Role::kWorker) heartbeats_[id].examples = steps * 10;
  }
};

TEST_F(TaskFiguresTest, WorkersWithoutAStepHaveNoFigures) {
  const JobId job = train(job_config("a"));
  for (std::uint32_t i : {0u, 1u}) heartbeats_[worker(i)].loss = std::numeric_limits<double>::quiet_NaN();
  pass(milliseconds(300));
  for (const TaskStatus& task : status(job).tasks) {
    EXPECT_FALSE(task.figures.examples_per_second) << to_string(task.task);
    EXPECT_FALSE(task.figures.loss);
    EXPECT_FALSE(task.figures.lag);
  }
}

TEST_F(TaskFiguresTest, RateAndLossAreTheWorkersOwn) {
  const JobId job = train(job_config("a"));
  heartbeats_[worker(1)].loss = 0.5;
  for (std::uint64_t step = 1; step <= 30; ++step) {
    reach(worker(0), step);
    reach(worker(1), 2 * step);
    pass(milliseconds(100));
  }
  EXPECT_DOUBLE_EQ(figures(job, worker(0)).examples_per_second.value(), 100.0);
  EXPECT_DOUBLE_EQ(figures(job, worker(1)).examples_per_second.value(), 200.0);
  EXPECT_EQ(figures(job, worker(1)).loss, 0.5);
  EXPECT_FALSE(figures(job, ps(0)).examples_per_second);
  EXPECT_FALSE(figures(job, ps(0)).loss);
}

TEST_F(TaskFiguresTest, MetricsOfTheJobAreTheMeansOverItsWorkers) {
  const JobId job = train(job_config("a"), 3);
  EXPECT_TRUE(status(job).metrics.empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  heartbeats_[worker(0)].metrics = {{"accuracy", 0.5}, {"recall", nan}};
  heartbeats_[worker(1)].metrics = {{"recall", 0.25}, {"accuracy", 1.0}, {"auc", nan}};
  pass(milliseconds(100));
  EXPECT_EQ(status(job).metrics, (std::vector<MetricValue>{{"accuracy", 0.75}, {"recall", 0.25}}));
  heartbeats_[worker(0)].metrics = {};
  pass(milliseconds(100));
  EXPECT_EQ(value_of(status(job).metrics, "accuracy"), 0.75) << "the newest values that the worker has told";
  kill(worker(1));
  EXPECT_EQ(status(job).metrics, (std::vector<MetricValue>{{"accuracy", 0.5}})) << "a lost worker doesn't count";
}

TEST_F(TaskFiguresTest, WorkersWithDifferentMetricsGiveNoMoreThanOneMayHave) {
  const JobId job = train(job_config("a"));
  for (std::uint32_t i : {0u, 1u})
    for (std::size_t n = 0; n < kMaxMetrics; ++n)
      heartbeats_[worker(i)].metrics.push_back({"m" + std::to_string(i) + "_" + std::to_string(n), 1.0});
  pass(milliseconds(100));
  EXPECT_EQ(status(job).metrics.size(), kMaxMetrics);
}

TEST_F(TaskFiguresTest, LagIsBehindTheFurthestTaskOfItsRole) {
  const JobId job = train(job_config("a"), 3);
  reach(worker(0), 40);
  reach(worker(1), 50);
  reach(ps(0), 1000);
  reach(ps(1), 990);
  pass(milliseconds(100));
  EXPECT_EQ(figures(job, worker(0)).lag, 10u);
  EXPECT_EQ(figures(job, worker(1)).lag, 0u);
  EXPECT_FALSE(figures(job, worker(2)).lag) << "it hasn't stepped";
  EXPECT_EQ(figures(job, ps(0)).lag, 0u);
}

TEST_F(TaskFiguresTest, WorkerThatIsSilentHasNoRate) {
  const JobId job = train(job_config("a"));
  for (std::uint64_t step = 1; step <= 100; ++step) {
    reach(worker(1), step);
    if (step == 60) silence(worker(1));
    pass(milliseconds(100));
  }
  ASSERT_EQ(task_status(job, worker(1)).state, TaskState::kSilent);
  EXPECT_FALSE(figures(job, worker(1)).examples_per_second);
}

TEST_F(TaskFiguresTest, PsThatIsSilentLagsBehindTheOther) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  for (std::uint64_t step = 1; step <= 50; ++step) {
    reach(ps(0), step);
    reach(ps(1), step);
    if (step == 20) silence(ps(1));
    pass(milliseconds(100));
  }
  ASSERT_EQ(task_status(job, ps(1)).state, TaskState::kSilent);
  EXPECT_EQ(figures(job, ps(0)).lag, 0u);
  EXPECT_EQ(figures(job, ps(1)).lag, 31u);
}

TEST_F(TaskFiguresTest, LostTaskIsNotTheFurthest) {
  const JobId job = train(job_config("a"));
  reach(worker(0), 40);
  reach(worker(1), 50);
  pass(milliseconds(100));
  kill(worker(1));
  EXPECT_EQ(figures(job, worker(0)).lag, 0u);
  EXPECT_FALSE(figures(job, worker(1)).lag);
}

TEST_F(TaskFiguresTest, AnotherGenerationBeginsAnew) {
  const JobId job = train(job_config("a"));
  for (std::uint64_t step = 1; step <= 30; ++step) {
    reach(worker(0), step);
    pass(milliseconds(100));
  }
  ASSERT_TRUE(figures(job, worker(0)).examples_per_second);
  // worker/0 has opened the new generation and has made no step in it. The other worker still reports its old steps.
  heartbeats_[worker(0)].generation = Generation(2);
  pass(milliseconds(100));
  EXPECT_FALSE(figures(job, worker(0)).examples_per_second);
  EXPECT_FALSE(figures(job, worker(0)).lag);
}

TEST_F(TaskFiguresTest, EndedJobKeepsItsFiguresButShowsWhetherItsTasksLiveNow) {
  const JobId job = train(job_config("a"), 1);
  heartbeats_[worker(0)].loss = 0.5;
  reach(worker(0), 10);
  pass(milliseconds(100));
  ASSERT_EQ(task_status(job, worker(0)).state, TaskState::kRunning);
  lend_all(job);
  report_pacer(10, 1);
  finish(job, worker(0));
  ASSERT_EQ(status(job).state, JobState::kFinished);
  heartbeats_[worker(0)] = Heartbeat();
  pass(milliseconds(300));
  EXPECT_EQ(task_status(job, worker(0)).state, TaskState::kReady);
  kill(worker(0));
  pass(seconds(3));
  EXPECT_EQ(task_status(job, worker(0)).state, TaskState::kLeft);
  EXPECT_GE(task_status(job, worker(0)).heartbeat_age.value(), seconds(3));
  EXPECT_EQ(figures(job, worker(0)).step, 10u);
  EXPECT_EQ(figures(job, worker(0)).loss, 0.5);
}

TEST_F(TaskFiguresTest, JobThatWaitsForItsTasksHasNoFiguresOfTheJobBefore) {
  const JobId first = train(job_config("a"));
  reach(worker(0), 10);
  pass(milliseconds(100));
  kill(worker(0));
  kill(worker(1));
  submit(job_config("b"));
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  const JobId second = cluster_->current_or_last().value();
  ASSERT_NE(second, first);
  EXPECT_EQ(figures(second, worker(0)).step, 0u);
  EXPECT_EQ(figures(first, worker(0)).step, 10u);
}

TEST_F(TaskFiguresTest, TasksThatTrainAnotherJobAreNotToldAsRunningInTheOneBefore) {
  const JobId first = train(job_config("a"), 1);
  lend_all(first);
  report_pacer(10, 1);
  finish(first, worker(0));
  const JobId second = submit(job_config("b"));
  pass(milliseconds(100));
  ASSERT_EQ(task_status(second, worker(0)).state, TaskState::kRunning);
  EXPECT_EQ(task_status(first, worker(0)).state, TaskState::kReady);
  EXPECT_EQ(task_status(first, worker(0)).reason, "in job b");
}

TEST_F(TaskFiguresTest, ChiefThatWasRestartedStillTellsOfTheTasksOfAnEndedJob) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  finish(job, worker(0));
  restart_chief();
  hello_again(worker(0));
  EXPECT_EQ(task_status(job, worker(0)).state, TaskState::kReady);
}

TEST_F(TrainingTest, FinishedWorkerHasTheStepsThatItReported) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  finish(job, worker(0));
  ASSERT_EQ(status(job).state, JobState::kFinished);
  EXPECT_EQ(status(job).tasks.back().figures.step, 10u);
}

TEST_F(TrainingTest, PhaseTimesAreThoseSinceTheEndOfWarmUp) {
  start_chief(1, 1);
  hello_all();
  const JobConfig config = job_config("a");
  const std::string toml = "# a";
  step(Submit{ClientId(1), Submission{toml, config, 100}});
  const JobId job(1);
  ASSERT_EQ(status(job).state, JobState::kRunning);
  Heartbeat& beat = heartbeats_[worker(0)];
  beat.phase_times = PhaseTimes(kPhases, seconds(3));
  say(worker(0), beat);
  pacer_.measured_steps = 1;
  report_pacer(101, 0);
  say(worker(0), beat);
  beat.phase_times = PhaseTimes(kPhases, seconds(8));
  say(worker(0), beat);
  EXPECT_EQ(status(job).tasks.back().figures.phase_times, PhaseTimes(kPhases, seconds(5)));
}

TEST_F(TrainingTest, FiguresOfShardsAreInTheStatusOfTheirPs) {
  const JobId job = train(job_config("a"), 1);
  const ShardLoad load{ShardId(0), seconds(9), seconds(5), seconds(2)};
  Heartbeat beat = heartbeats_[ps(0)];
  beat.shards = {load};
  say(ps(0), beat);
  EXPECT_EQ(status(job).tasks.front().figures.shards, std::vector<ShardLoad>{load});
}

}  // namespace
}  // namespace disttrain::chiefd
