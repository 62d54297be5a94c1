// The life of a job, from the wait for its tasks to its end.
#include <gmock/gmock.h>

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(ClusterTest, JobWaitsForTasksAndNamesThem) {
  start_chief(1, 3);
  hello(ps(0));
  const JobId job = submit(job_config("a"));
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(status(job).reason, "waiting for 3 of 4 tasks: worker/0, worker/1, worker/2");
  hello(worker(1));
  EXPECT_EQ(status(job).reason, "waiting for 2 of 4 tasks: worker/0, worker/2");
  pass(seconds(3));  // two workers are enough (min_workers is 1), so the job soon starts without the others
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(status(job).warnings, std::vector<std::string>{"began without worker/0 (host:7120), worker/2 (host:7122)"});
  EXPECT_EQ(sent<OpenJob>(worker(1)).front().roster.members.size(), 1u);
}

TEST_F(ClusterTest, JobWhoseClientStartsTheWorkersWaitsForAllOfThem) {
  start_chief(1, 4);
  hello(ps(0));
  const JobId job = submit(job_config("a", Mode::kSync), false, 3);
  hello(worker(1));
  hello(worker(2));
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(
      status(job).reason,
      "waiting for 2 of 5 tasks: worker/0, worker/3; the job waits until this is over (job.workers_timeout sets no "
      "limit)");
  hello(worker(3));
  pass(seconds(3));  // the client starts only 3 workers, so the job soon starts without worker/0
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<OpenJob>(worker(1)).front().roster.members.size(), 3u);
}

TEST_F(ClusterTest, JobThatHasBegunNeedsNoMoreThanItsLeastWorkers) {
  start_chief(1, 2);
  hello_all();
  const JobId job = submit(job_config("a"), false, 2);
  pass(seconds(1));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  kill(worker(1));
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(ClusterTest, JobWithoutTasksFailsAtItsDeadline) {
  start_chief(1, 1);
  JobConfig config = job_config("a");
  config.job.ps_timeout = seconds(120);
  const JobId job = submit(config);
  pass(seconds(121));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kUnavailable);
  EXPECT_NE(status(job).reason.find("ps/0, worker/0"), std::string::npos) << status(job).reason;
  EXPECT_EQ(ended_, std::vector<JobId>{job});
}

TEST_F(TrainingTest, WholeLifeOfAJob) {
  evaluation_records_ = 100;
  JobConfig config = job_config("a");
  config.evaluate.files = "t*";
  config.job.shards = 2;
  const JobId job = train(config);
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 1u);
  EXPECT_EQ(sent<DescribeJob>(worker(1)).size(), 0u);
  const CreateShards create = sent<CreateShards>(ps(1)).front();
  EXPECT_EQ(create.layout.shards, 2u);
  EXPECT_EQ(create.owners[1].ps, member(ps(1)));
  EXPECT_EQ(create.train_records, 1000u);
  EXPECT_NE(create.token, 0u);
  EXPECT_EQ(sent<OpenJob>(worker(1)).front().token, create.token);
  EXPECT_TRUE(sent<OpenJob>(worker(0)).front().evaluates);
  EXPECT_FALSE(sent<OpenJob>(worker(1)).front().evaluates);
  EXPECT_EQ(sent<StartJob>(worker(1)).size(), 1u);

  ask(job, worker(0));
  ask(job, worker(1));
  ask(job, worker(0));
  ask(job, worker(1));
  while (records_of(sent<LeaseGrant>(worker(0))) + records_of(sent<LeaseGrant>(worker(1))) < 1000) ask(job, worker(0));
  ask(job, worker(1));
  EXPECT_FALSE(sent<LeaseGrant>(worker(1)).back().last);  // parked: worker/0 may still die
  report_pacer(100, 1);
  EXPECT_TRUE(sent<LeaseGrant>(worker(1)).back().last);
  ask(job, worker(0));
  EXPECT_TRUE(sent<LeaseGrant>(worker(0)).back().last);

  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  finish(job, worker(1));
  EXPECT_EQ(status(job).state, JobState::kEvaluating);
  ASSERT_EQ(sent<Evaluate>(worker(0)).size(), 1u);
  say(worker(0),
      Evaluated{job, Generation(1), Step(100), true, 0.5, {{"accuracy", 0.9}, {"auc", 0.8}}, 100, {}, false});
  EXPECT_EQ(status(job).state, JobState::kFinished);
  EXPECT_EQ(status(job).global_step, 100u);
  EXPECT_EQ(status(job).evaluation->metrics, (std::vector<MetricValue>{{"accuracy", 0.9}, {"auc", 0.8}}));
  EXPECT_EQ(status(job).tasks.size(), 4u);
  EXPECT_EQ(count_sent<CloseJob>(), 4u);
  EXPECT_EQ(ended_, std::vector<JobId>{job});
  EXPECT_EQ(journal_.jobs[job].state, JobState::kFinished);
  EXPECT_EQ(journal_.jobs[job].generation.generation, Generation(1));
}

TEST_F(TrainingTest, GenerationIsDurableBeforeShardsAreCreated) {
  start_chief(2, 1);
  hello_all();
  const JobConfig config = job_config("a");
  obedient_ = false;
  const JobId job = submit(config);
  disk_is_held_ = true;
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  EXPECT_EQ(count_sent<CreateShards>(), 0u);
  release_disk();
  EXPECT_EQ(count_sent<CreateShards>(), 1u);
}

TEST_F(TrainingTest, PsOutsideTheJobMayDie) {
  const JobId job = train(job_config("a"));
  kill(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, TaskThatFailsBeforeTheJobOpensGivesItsCode) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(0), ErrorCode::kData, "labels are corrupt"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kData);
}

// A client that first sees a job at its end asks for the output of rank 0.
TEST_F(TrainingTest, TheStatusOfAnEndedJobHasTheRanks) {
  const JobId job = train(job_config("a"), 2);
  lend_all(job);
  report_pacer(10, 1);
  finish(job, worker(0));
  finish(job, worker(1));
  ASSERT_EQ(status(job).state, JobState::kFinished);
  pass(seconds(1));
  std::vector<std::optional<std::uint32_t>> ranks;
  for (const TaskStatus& task : status(job).tasks)
    if (task.task.role == Role::kWorker) ranks.push_back(task.rank);
  EXPECT_THAT(ranks, testing::ElementsAre(0u, 1u));
}

TEST_F(TrainingTest, MessagesOfAnotherGenerationChangeNothing) {
  const JobId job = train(job_config("a"), 1);
  say(worker(0), WorkerFinished{job, Generation(2), 10});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

}  // namespace
}  // namespace disttrain::chiefd
