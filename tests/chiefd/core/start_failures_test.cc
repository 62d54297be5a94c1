// Workers that can't take part in a job's start: they lack memory, a device, a library or the data. The others go on.
#include <tuple>

#include "chiefd/core/job/facts/faults.h"
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class StartFailuresTest : public TrainingTest {
 protected:
  void begin(std::uint32_t workers = 3) {
    start_chief(1, workers);
    hello_all();
    obedient_ = false;
  }
  JobId begin_job(JobConfig config, std::uint32_t workers = 3) {
    begin(workers);
    return submit(config);
  }
  JobDescribed described(JobId job) const {
    return JobDescribed{.job = job, .model = model_, .train_records = records_};
  }
  // worker/0 has described the job, and the ps has made its shards. The workers were told to open the job.
  JobId begin_opening(JobConfig config, std::uint32_t workers = 3) {
    const JobId job = begin_job(config, workers);
    say(worker(0), described(job));
    say(ps(0), ShardsCreated{job, generation(job)});
    EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 1u);
    return job;
  }
  // The same, but the last worker hasn't come yet.
  JobId begin_opening_without_last(JobConfig config, std::uint32_t workers) {
    begin(workers);
    kill(worker(workers - 1));
    pass(seconds(1));
    const JobId job = submit(config);
    pass(seconds(10));
    say(worker(0), described(job));
    say(ps(0), ShardsCreated{job, generation(job)});
    return job;
  }
  void open(JobId job, TaskId task) { say(task, JobOpened{job, generation(job)}); }
  void fail(JobId job, TaskId task, ErrorCode code, const std::string& why) {
    say(task, TaskFailed{job, generation(job), code, why});
  }
  void fail_description(JobId job, TaskId task, ErrorCode code, const std::string& why) {
    say(task, TaskFailed{job, Generation(), code, why});
  }
  // The last worker opens the job. From now on all tasks obey.
  void open_last(JobId job, TaskId task) {
    obedient_ = true;
    open(job, task);
    pass(seconds(2));
  }
  // Another process of the task, with another number. It takes the place of the dead one.
  void restart_anew(TaskId task) {
    kill(task);
    pid_of_[task] = 5000 + ++last_incarnation_;
    restart(task);
  }
  std::vector<Member> roster() const { return sent<SetRoster>(ps(0)).back().roster.members; }
  std::string reason_of(JobId job, TaskId task) {
    for (const TaskStatus& one : status(job).tasks)
      if (one.task == task) return one.reason;
    return "";
  }
};

// The workers' codes for: no device, no data, no permission, other data, no library, no memory.
class CannotOpen : public StartFailuresTest, public testing::WithParamInterface<ErrorCode> {};
INSTANTIATE_TEST_SUITE_P(WithCode, CannotOpen,
                         testing::Values(ErrorCode::kConfig, ErrorCode::kNoInput, ErrorCode::kNoPermission,
                                         ErrorCode::kData, ErrorCode::kSoftware, ErrorCode::kFailed));

TEST_P(CannotOpen, WorkerIsLeftOutWithOneRollback) {
  const JobId job = begin_opening(job_config("a"));
  fail(job, worker(1), GetParam(), "no device");
  EXPECT_EQ(generation(job), Generation(1)) << "the others may fail too";
  open(job, worker(0));
  open_last(job, worker(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
  EXPECT_TRUE(sent<CloseJob>(worker(1)).back().removed);
  EXPECT_EQ(event("worker_refused"), "worker/1 can't take part: no device");
  EXPECT_EQ(reason_of(job, worker(1)), "can't take part in the job until its process is another one: no device");
  EXPECT_NE(status(job).reason.find("worker/1 can't take part"), std::string::npos) << status(job).reason;
}

TEST_F(StartFailuresTest, ProcessThatComesBackAsAnotherMemberStaysOut) {
  const JobId job = begin_opening(job_config("a"));
  open(job, worker(0));
  fail(job, worker(1), ErrorCode::kConfig, "no device");
  open_last(job, worker(2));
  const std::size_t asked = sent<DescribeJob>(worker(1)).size();
  restart(worker(1));  // after CloseJob a worker draws another incarnation
  pass(seconds(2));
  EXPECT_EQ(sent<DescribeJob>(worker(1)).size(), asked);
  EXPECT_EQ(roster().size(), 2u);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  EXPECT_EQ(generation(job), Generation(3));
  EXPECT_EQ(roster().size(), 2u) << "also in the next generation";
  restart_anew(worker(1));
  pass(seconds(2));
  EXPECT_EQ(roster().size(), 3u);
  EXPECT_EQ(reason_of(job, worker(1)), "");
}

// Somebody starts the worker again as soon as it fails. Each of its processes lacks the same.
TEST_F(StartFailuresTest, NextProcessOfAWorkerThatFailedCostsNoSecondStart) {
  const JobId job = begin_opening(job_config("a"));
  open(job, worker(0));
  fail(job, worker(1), ErrorCode::kConfig, "no device");
  kill(ps(0));  // the job must wait, so the next process has time to prepare
  open(job, worker(2));
  obedient_ = true;
  restart_anew(worker(1));
  pass(seconds(1));
  restart(ps(0));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().roster.members.size(), 2u) << "the new process joins later";
}

// The second cause rolls the job back before the first worker's failure has.
TEST_F(StartFailuresTest, FailureBeforeAnotherRollbackIsNotForgotten) {
  const JobId job = begin_opening(job_config("a"));
  fail(job, worker(1), ErrorCode::kConfig, "no device");
  obedient_ = true;
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
  EXPECT_EQ(reason_of(job, worker(1)), "can't take part in the job until its process is another one: no device");
}

// In a container each process has the number 1, and the host name stays.
TEST_F(StartFailuresTest, ProcessWithTheSameNumberIsAnotherOne) {
  TaskHello first;
  first.member = Member{worker(1), Incarnation(1)};
  first.host = "pod-1";
  first.pid = 1;
  first.process = Incarnation(1);
  TaskHello next = first;
  next.member.incarnation = Incarnation(2);
  EXPECT_TRUE(is_same_process(first, next)) << "it has only drawn another incarnation";
  next.process = Incarnation(2);
  EXPECT_FALSE(is_same_process(first, next));
  first.process = next.process = Incarnation();
  EXPECT_TRUE(is_same_process(first, next)) << "of an older version, which says no more";
}

// job.on_worker_loss = "wait": the first generation chooses the ranks.
TEST_F(StartFailuresTest, RankOfAWorkerThatDiesAsItDescribesTheJobIsKept) {
  JobConfig config = job_config("a");
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = begin_job(config);
  obedient_ = true;
  kill(worker(0));
  restart(worker(0));
  pass(seconds(10));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 3u);
}

// worker/2 isn't among the workers with which the job has begun.
TEST_F(StartFailuresTest, JobThatWaitsForItsWorkersDoesNotWaitForOneThatCannotJoin) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 2);
  hello_all();
  JobConfig config = job_config("a");
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = submit(config);
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  obedient_ = false;
  hello(worker(2));
  say(worker(2), JobDescribed{job, model_, records_, 0});
  ASSERT_EQ(sent<OpenJob>(worker(2)).size(), 1u);
  say(worker(2), TaskFailed{job, generation(job), ErrorCode::kFailed, "it has too little memory"});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
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

// The losses are so far apart that job.max_restarts never counts two of them.
TEST_F(StartFailuresTest, JobThatRollsBackAgainAndAgainFails) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(1);
  const JobId job = begin_job(config);
  obedient_ = true;
  pass(seconds(1));
  int rollbacks = 0;
  for (; rollbacks < 300 && status(job).state != JobState::kFailed; ++rollbacks) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(12));
  }
  EXPECT_LT(rollbacks, 110) << status(job).reason;
  EXPECT_NE(status(job).reason.find("rolled back 101 times without getting further"), std::string::npos)
      << status(job).reason;
}

TEST_F(StartFailuresTest, SeveralWorkersThatFailCostOneRollback) {
  const JobId job = begin_opening(job_config("a"), 4);
  fail(job, worker(1), ErrorCode::kConfig, "no device");
  open(job, worker(0));
  fail(job, worker(3), ErrorCode::kNoInput, "no data");
  open_last(job, worker(2));
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
}

TEST_F(StartFailuresTest, JobThatNoWorkerCanOpenFailsAtOnce) {
  const JobId job = begin_opening(job_config("a"));
  for (const std::uint32_t i : {0u, 1u, 2u}) fail(job, worker(i), ErrorCode::kConfig, "bad layer " + std::to_string(i));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kConfig);
  EXPECT_EQ(generation(job), Generation(1));
}

TEST_F(StartFailuresTest, WorkerThatTheJobNeedsFailsIt) {
  JobConfig config = job_config("a");
  config.job.min_workers = 3;
  const JobId job = begin_opening(config);
  fail(job, worker(1), ErrorCode::kConfig, "no device");
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(1));
  EXPECT_EQ(status(job).root_cause->reason, "no device");
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

// worker/1 has come after the job began, so it isn't in the roster.
TEST_F(StartFailuresTest, WorkerThatCameTooLateToBeginTakesThePlaceOfOneThatFails) {
  const JobId job = begin_opening_without_last(job_config("a"), 2);
  ASSERT_EQ(sent<OpenJob>(worker(0)).size(), 1u);
  obedient_ = true;
  restart(worker(1));
  fail(job, worker(0), ErrorCode::kConfig, "no device");
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(1))}));
  EXPECT_EQ(reason_of(job, worker(0)), "can't take part in the job until its process is another one: no device");
}

// worker/1 has died, and its next process can take part.
TEST_F(StartFailuresTest, NextProcessOfALostWorkerTakesThePlaceOfOneThatFails) {
  const JobId job = begin_opening(job_config("a"), 2);
  restart_anew(worker(1));
  obedient_ = true;
  fail(job, worker(0), ErrorCode::kConfig, "no device");
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(1))}));
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

// A worker that has opened the job hasn't trained yet.
TEST_F(StartFailuresTest, WorkerThatDiesAfterItHasOpenedTheJobIsSparedOnce) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  const JobId job = begin_opening_without_last(config, 3);
  restart(worker(2));
  for (int deaths = 0; deaths < 2; ++deaths) {
    open(job, worker(0));
    restart_anew(worker(0));
    open(job, worker(1));
    pass(seconds(2));
    say(worker(0), described(job));
    pass(seconds(2));
    say(ps(0), ShardsCreated{job, generation(job)});
  }
  EXPECT_EQ(std::count_if(journal_.events.begin(), journal_.events.end(),
                          [](const EventRecord& one) { return one.kind == kLossCounted; }),
            1);
}

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

// worker/0 comes back again and again, and fails again and again, while worker/1 comes and goes.
TEST_F(StartFailuresTest, StartsWithoutTheSameWorkerCountAsLosses) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = begin_opening_without_last(config, 2);
  int starts = 0;
  for (; starts < 10 && status(job).state != JobState::kFailed; ++starts) {
    restart(worker(1));
    fail(job, worker(0), ErrorCode::kConfig, "no device");
    say(worker(1), LeaveRequest{});  // which is no loss
    kill(worker(1));
    restart_anew(worker(0));
    say(worker(0), described(job));
    pass(seconds(15));
    say(ps(0), ShardsCreated{job, generation(job)});
  }
  EXPECT_EQ(starts, 4) << status(job).reason;  // one is spared, two count, and the next is one too many
  EXPECT_NE(status(job).reason.find("job.max_restarts is 2"), std::string::npos) << status(job).reason;
}

TEST_F(StartFailuresTest, WorkerThatDiesWhenItOpensTheJobJoinsLater) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = begin_opening(config);
  open(job, worker(0));
  open(job, worker(2));
  obedient_ = true;
  kill(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
  // Each of its processes dies again when it opens the job.
  for (int deaths = 2; deaths <= 3; ++deaths) {
    restart_anew(worker(1));
    pass(seconds(5));
    EXPECT_EQ(roster().size(), 3u) << deaths;
    kill(worker(1));
  }
  restart_anew(worker(1));
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(generation(job), Generation(2)) << "the others have gone on";
  EXPECT_EQ(roster().size(), 2u);
  EXPECT_NE(reason_of(job, worker(1)).find("it was lost 3 times"), std::string::npos) << reason_of(job, worker(1));
  EXPECT_NE(reason_of(job, worker(1)).find("; the last loss: its connection closed"), std::string::npos);
}

TEST_F(StartFailuresTest, WorkerThatDiesWhileTheShardsAreMadeCostsOneRollback) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 0;
  const JobId job = begin_job(config);
  say(worker(0), described(job));
  obedient_ = true;
  kill(worker(2));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 2u);
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

TEST_F(StartFailuresTest, OpeningThatTakesTooLongLeavesTheWorkerOut) {
  const JobId job = begin_opening(job_config("a"));
  open(job, worker(0));
  open(job, worker(1));
  obedient_ = true;
  pass(seconds(123));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(1))}));
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

TEST_F(StartFailuresTest, InvitedWorkersThatDieAgainAndAgainEndTheJob) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = train(config, 1);
  obedient_ = false;  // its trainer kills it before it has described the model
  for (int deaths = 0; deaths < 3; ++deaths) {
    kill(worker(0));
    restart(worker(0));
    pass(seconds(1));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_EQ(status(job).root_cause->task, worker(0));
  EXPECT_NE(status(job).root_cause->reason.find("while it read the data and built the model, its connection closed"),
            std::string::npos)
      << status(job).root_cause->reason;
}

// ---- faults of the workers' own

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

}  // namespace
}  // namespace disttrain::chiefd
