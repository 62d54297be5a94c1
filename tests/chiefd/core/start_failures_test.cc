// Workers that can't open a job: they lack memory, a device, a library or the data. The others go on.
#include "tests/chiefd/core/start_failures_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

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

TEST_F(StartFailuresTest, OpeningThatTakesTooLongLeavesTheWorkerOut) {
  const JobId job = begin_opening(job_config("a"));
  open(job, worker(0));
  open(job, worker(1));
  obedient_ = true;
  pass(seconds(123));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(1))}));
}

}  // namespace
}  // namespace disttrain::chiefd
