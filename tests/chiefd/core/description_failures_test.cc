// Workers that can't describe a job, mostly because they lack its data. The chief asks the other workers, or asks the
// same one again.
#include <tuple>

#include "tests/chiefd/core/start_failures_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(StartFailuresTest, WorkerThatCameTooLateToDescribeTheJobIsAskedToo) {
  begin(3);
  for (const std::uint32_t i : {1u, 2u}) kill(worker(i));
  pass(seconds(1));
  const JobId job = submit(job_config("a"));
  pass(seconds(10));
  ASSERT_EQ(sent<DescribeJob>(worker(0)).size(), 1u);
  restart(worker(1));
  fail_description(job, worker(0), ErrorCode::kNoInput, "no data");
  ASSERT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  restart(worker(2));
  fail_description(job, worker(1), ErrorCode::kNoInput, "no data there either");
  ASSERT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  ASSERT_EQ(sent<DescribeJob>(worker(2)).size(), 1u);
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 1u) << "it has failed";
  obedient_ = true;
  say(worker(2), described(job));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(2))}));
}

// worker/0 was lost while it described the job, so the job begins without it if it can.
TEST_F(StartFailuresTest, WorkerThatWasLostBeforeIsAskedIfTheOthersCannotDescribeTheJob) {
  const JobId job = begin_job(job_config("a"), 2);
  restart_anew(worker(0));
  pass(seconds(3));
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  ASSERT_EQ(sent<DescribeJob>(worker(0)).size(), 1u);
  fail_description(job, worker(1), ErrorCode::kNoInput, "no data");
  ASSERT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 2u);
  obedient_ = true;
  say(worker(0), described(job));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// A client that first sees the job at its end asks for the output of rank 0.
TEST_F(StartFailuresTest, WorkerThatFailsTheJobKeepsItsRank) {
  const JobId job = begin_job(job_config("a"), 1);
  fail_description(job, worker(0), ErrorCode::kFailed, "the trainer raised");
  ASSERT_EQ(status(job).state, JobState::kFailed);
  const std::vector<TaskStatus> tasks = status(job).tasks;
  EXPECT_TRUE(std::any_of(tasks.begin(), tasks.end(), [](const TaskStatus& task) { return task.rank == 0u; }));
}

TEST_F(StartFailuresTest, JobBeginsWithoutTheWorkerThatCannotDescribeIt) {
  const JobId job = begin_job(job_config("a"));
  ASSERT_EQ(sent<DescribeJob>(worker(0)).size(), 1u);
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 0u);
  fail_description(job, worker(0), ErrorCode::kNoInput, "no data");
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  EXPECT_EQ(sent<DescribeJob>(worker(2)).size(), 1u) << "all others are asked at once";
  EXPECT_NE(status(job).reason.find("because worker/0 couldn't"), std::string::npos) << status(job).reason;
  say(worker(2), described(job));
  obedient_ = true;
  say(worker(1), described(job));
  say(ps(0), ShardsCreated{job, generation(job)});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(1)), member(worker(2))}));
  EXPECT_EQ(event("worker_refused"), "worker/0 can't take part: no data");
}

TEST_F(StartFailuresTest, JobThatNoWorkerCanDescribeFailsWithTheFirstError) {
  const JobId job = begin_job(job_config("a"));
  fail_description(job, worker(0), ErrorCode::kData, "labels are corrupt");
  fail_description(job, worker(2), ErrorCode::kData, "labels are corrupt too");
  EXPECT_EQ(status(job).state, JobState::kStarting);
  fail_description(job, worker(1), ErrorCode::kData, "labels are corrupt as well");
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kData);
  EXPECT_EQ(status(job).root_cause->task, worker(0));
  EXPECT_EQ(status(job).root_cause->reason, "labels are corrupt");
  EXPECT_TRUE(status(job).warnings.empty()) << status(job).warnings.front();
}

TEST_F(StartFailuresTest, DescriptionThatTakesTooLongIsAskedOfTheOthers) {
  const JobId job = begin_job(job_config("a"));
  pass(seconds(121));
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  say(worker(1), described(job));
  EXPECT_TRUE(sent<CloseJob>(worker(0)).back().removed) << "it hangs, and ends its process";
  EXPECT_NE(event("worker_refused").find("worker/0 can't take part: it heartbeats, but didn't read the data"),
            std::string::npos);
}

TEST_F(StartFailuresTest, WorkerThatDiesAsItDescribesTheJobIsAskedLast) {
  const JobId job = begin_job(job_config("a"));
  obedient_ = true;
  kill(worker(0));
  restart(worker(0));
  pass(seconds(3));
  EXPECT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// No worker that is there can take part.
TEST_F(StartFailuresTest, JobThatHasNeverTrainedDoesNotWaitForWhatItsLastWorkerLacks) {
  const JobId job = begin_opening_without_last(job_config("a"), 2);
  restart(worker(1));
  fail(job, worker(0), ErrorCode::kConfig, "no device");
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(3));
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  fail_description(job, worker(1), ErrorCode::kNoInput, "no data");
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("no data"), std::string::npos) << status(job).reason;
  EXPECT_NE(status(job).reason.find("no device"), std::string::npos) << status(job).reason;
}

// The chief is restarted while the job rolls back for the first time.
TEST_F(StartFailuresTest, NewChiefOfAJobThatHasNeverTrainedDoesNotWaitEither) {
  const JobId job = begin_job(job_config("a"), 1);
  say(worker(0), described(job));
  say(ps(0), ShardsCreated{job, generation(job)});
  restart_anew(ps(0));
  restart_chief();
  restart_anew(worker(0));
  hello_again(ps(0));
  pass(seconds(1));
  ASSERT_FALSE(sent<DescribeJob>(worker(0)).empty());
  fail_description(job, worker(0), ErrorCode::kNoInput, "no data");
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_NE(status(job).reason.find("it can't take part: no data"), std::string::npos) << status(job).reason;
}

// worker/2 has joined the job and trained. Its next process lacks something at first.
TEST_F(StartFailuresTest, JobThatWaitsForAWorkerAsksItAgain) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 2);
  hello_all();
  JobConfig config = job_config("a");
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = submit(config);
  hello(worker(2));
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 3u);
  kill(worker(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  obedient_ = false;
  restart(worker(2));
  say(worker(2), TaskFailed{job, Generation(0), ErrorCode::kNoInput, "train.csv isn't there"});
  obedient_ = true;
  pass(seconds(60));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// A host that has just been started may lack its file systems for a while.
class AskedAgain : public StartFailuresTest, public testing::WithParamInterface<std::tuple<OnWorkerLoss, bool>> {};
INSTANTIATE_TEST_SUITE_P(Either, AskedAgain,
                         testing::Combine(testing::Values(OnWorkerLoss::kWait, OnWorkerLoss::kShrink),
                                          testing::Bool()));

TEST_P(AskedAgain, WorkerThatTheJobWaitsFor) {
  const auto [on_loss, rolls_back] = GetParam();
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = on_loss;
  config.job.min_workers = 3;
  const JobId job = train(config, 3);
  obedient_ = false;
  if (rolls_back) kill(ps(0));
  restart_anew(worker(1));
  const std::size_t asked = sent<DescribeJob>(worker(1)).size();
  fail_description(job, worker(1), ErrorCode::kNoInput, "no data");
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(sent<DescribeJob>(worker(1)).size(), asked + 1) << "after a pause";
  EXPECT_NE(status(job).reason.find("worker/1 can't take part, and is asked again: no data"), std::string::npos)
      << status(job).reason;
  for (int i = 0; i < 10; ++i) {
    fail_description(job, worker(1), ErrorCode::kNoInput, "no data");
    pass(seconds(11));
  }
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  EXPECT_LE(sent<DescribeJob>(worker(1)).size(), asked + 15);
  obedient_ = true;
  say(worker(1), described(job));
  if (rolls_back) restart(ps(0));
  pass(seconds(11));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).reason.find("no data"), std::string::npos) << status(job).reason;
}

}  // namespace
}  // namespace disttrain::chiefd
