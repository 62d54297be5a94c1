#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(ClusterTest, TermIsDurableBeforeAnyoneIsHeard) {
  disk_is_held_ = true;
  start_chief(1, 1);
  EXPECT_EQ(listens_, 0);
  release_disk();
  EXPECT_EQ(listens_, 1);
  EXPECT_EQ(cluster_->term(), Term(1));
  restart_chief();
  EXPECT_EQ(cluster_->term(), Term(2));
}

TEST_F(ClusterTest, UnlistedTaskIsRefusedWithASentence) {
  start_chief(1, 1);
  TaskHello hello;
  hello.member = Member{worker(3), Incarnation(9)};
  step(TaskJoined{hello});
  ASSERT_TRUE(task_refused_);
  EXPECT_EQ(task_refused_->code, ErrorCode::kConfig);
  EXPECT_NE(task_refused_->reason.find("worker/3"), std::string::npos);
}

// A task may obey a newer chief if an operator replaced this chief's folder by an old copy, or if a second chief runs
// on a copy of the folder.
TEST_F(ClusterTest, TaskThatObeysANewerChiefOfTheJournalIsTurnedAwayAndSaidSo) {
  start_chief(1, 1);
  ASSERT_EQ(cluster_->term(), Term(1));
  const auto answer = [this](JournalId journal, Term term, Incarnation chief) {
    TaskHello hello = hello_of(worker(0));
    hello.journal = journal;
    hello.term = term;
    hello.chief = chief;
    task_refused_.reset();
    step(TaskJoined{hello});
    return task_refused_;
  };
  const auto is_ready = [this] {
    for (const TaskStatus& status : cluster_->tasks(now_))
      if (status.task == worker(0)) return status.state == TaskState::kReady;
    return false;
  };
  const JournalId ours(7);
  for (const auto& [term, chief] : {std::pair{Term(2), Incarnation(70)}, std::pair{Term(1), Incarnation(71)}}) {
    const auto refused = answer(ours, term, chief);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code, ErrorCode::kTemporary);
    EXPECT_FALSE(refused->ends) << "the right chief may come to this address";
    EXPECT_NE(refused->reason.find("this chief's state directory is an old copy"), std::string::npos)
        << refused->reason;
    EXPECT_FALSE(is_ready());
  }
  EXPECT_FALSE(answer(ours, Term(1), Incarnation(70)));
  EXPECT_TRUE(is_ready());
  restart_chief();
  EXPECT_FALSE(answer(ours, Term(1), Incarnation(70))) << "this chief goes on with that one's journal";
  restart_chief();
  EXPECT_FALSE(answer(JournalId(8), Term(9), Incarnation(1))) << "terms of another journal say nothing";
}

TEST_F(ClusterTest, TasksOfALargeClusterSendHeartbeatsLessOften) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 249);
  hello(ps(0));
  say(ps(0), heartbeats_[ps(0)]);
  const auto pause = [this] { return sent<HeartbeatAnswer>(ps(0)).back().heartbeat_pause; };
  EXPECT_EQ(pause(), config_.heartbeat.timeout / 8) << "250 tasks, 2,000 heartbeats per timeout";
  for (std::uint32_t i = 249; i < 600; ++i) hello(worker(i));
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(pause(), config_.heartbeat.timeout / 4) << "600 tasks, but four heartbeats per timeout";
}

TEST_F(ClusterTest, TasksOfASmallClusterSendTenHeartbeatsPerTimeout) {
  start_chief(1, 2);
  hello(ps(0));
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(sent<HeartbeatAnswer>(ps(0)).back().heartbeat_pause, config_.heartbeat.timeout / 10);
}

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

TEST_F(TrainingTest, NothingIsLentBeforeTheGrantIsDurable) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  ask(job, worker(0));
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 0u);
  release_disk();
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 1u);
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

TEST_F(TrainingTest, LostWorkerInAsyncIsFencedAndExactlyWhatTheLedgerLacksIsLentAgain) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  ask(job, worker(0));
  ask(job, worker(1));
  const std::vector<Interval> lost = sent<LeaseGrant>(worker(0)).back().lease->positions;
  ASSERT_EQ(lost, (std::vector<Interval>{{0, 500}}));
  ask(job, worker(1));
  ask(job, worker(1));
  ask(job, worker(1));
  const std::uint64_t before = records_of(sent<LeaseGrant>(worker(1)));
  answers_fence_ = false;
  pacer_.ledger = {EpochLedger{0, {{0, 20}, {30, 40}}}};
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 1u);
  EXPECT_EQ(sent<FenceWorker>(ps(1)).size(), 1u);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
  ask(job, worker(1));
  say(ps(0), WorkerFenced{job, Generation(1), ShardId(0), member(worker(0)), Sequence(3), Step(3)});
  for (int i = 0; i < 20; ++i) ask(job, worker(1));
  EXPECT_LE(records_of(sent<LeaseGrant>(worker(1))), 500u) << "lent again before every shard fenced the worker";
  say(ps(1), WorkerFenced{job, Generation(1), ShardId(1), member(worker(0)), Sequence(3), Step(3)});
  for (int i = 0; i < 20; ++i) ask(job, worker(1));
  EXPECT_GE(before, 1u);
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 500u + 500u - 30u);
  EXPECT_EQ(status(job).warnings.size(), 1u);
}

TEST_F(TrainingTest, SspWorkerWithoutRecordsStaysForThoseOfALostWorker) {
  const JobId job = train(job_config("a", Mode::kSsp));
  ask(job, worker(0));
  const std::uint64_t lost = records_of(sent<LeaseGrant>(worker(0)));
  for (int i = 0; i < 100; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u - lost);
  EXPECT_FALSE(sent<LeaseGrant>(worker(1)).back().last) << "worker/0 has a lease yet";
  kill(worker(0));
  for (int i = 0; i < 100; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u);
  report_pacer(100, 1);
  EXPECT_TRUE(sent<LeaseGrant>(worker(1)).back().last);
}

TEST_F(TrainingTest, PsThatIsHeardIsNotDeadThoughNobodyListensAtItsAddress) {
  const JobId job = train(job_config("a"));
  say(worker(0), Accusation{job, Generation(1), ps(0), "can't be reached"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, PsOfWhichOneShardThreadStandsStillIsSilentThoughItHeartbeats) {
  const JobId job = train(job_config("a"));
  for (std::uint64_t turn = 1; turn < 20; ++turn) {
    heartbeats_[ps(0)].turns = {turn, turn};
    pass(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(status(job).state, JobState::kRunning);
  for (std::uint64_t turn = 20; turn < 40; ++turn) {
    heartbeats_[ps(0)].turns = {turn, 19};
    pass(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("shard thread 1 has stood still"), std::string::npos) << status(job).reason;
  heartbeats_[ps(0)].turns = {40, 20};
  pass(std::chrono::milliseconds(100));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, PsOutsideTheJobMayDie) {
  const JobId job = train(job_config("a"));
  kill(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

// ---- a task loses its connection and connects again: messages on the old connection may never have arrived

TEST_F(TrainingTest, ReturningTaskIsAskedAgainAtEachStageOfTheStart) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  const auto reconnect = [this](TaskId task) {
    step(ConnectionLost{member(task), "reset"});
    hello(task);
  };
  reconnect(worker(0));
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 2u);
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  reconnect(ps(0));
  EXPECT_EQ(sent<CreateShards>(ps(0)).size(), 2u);
  say(ps(0), ShardsCreated{job, Generation(1)});
  reconnect(worker(1));
  EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 2u);
  for (std::uint32_t i : {0u, 1u}) say(worker(i), JobOpened{job, Generation(1)});
  reconnect(worker(1));
  EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 2u) << "it had answered";
  reconnect(ps(0));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 2u);
  say(ps(0), RosterApplied{job, Generation(1), RosterVersion(1), Step(0), pacer_});
  EXPECT_EQ(status(job).state, JobState::kRunning);
  reconnect(worker(0));
  EXPECT_EQ(sent<StartJob>(worker(0)).size(), 2u);
}

TEST_F(TrainingTest, ReturningWorkerGetsItsLeasesAgain) {
  const JobId job = train(job_config("a"));
  ask(job, worker(0));
  ask(job, worker(1));
  ask(job, worker(0));
  const std::vector<LeaseGrant> before = sent<LeaseGrant>(worker(0));
  ASSERT_EQ(before.size(), 2u);
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  const std::vector<LeaseGrant> after = sent<LeaseGrant>(worker(0));
  ASSERT_EQ(after.size(), 4u);
  EXPECT_EQ(after[2].lease, before[0].lease);
  EXPECT_EQ(after[3].lease, before[1].lease);
  EXPECT_EQ(sent<LeaseGrant>(worker(1)).size(), 1u);
}

TEST_F(TrainingTest, LeaseThatIsBeingWrittenIsNotSentToAReturningWorkerBeforeItIsDurable) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  ask(job, worker(0));
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 0u);
  release_disk();
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 1u);
}

TEST_F(TrainingTest, ReturningSynchronousWorkerGetsItsBlocksAndThatTheyAreTheLast) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 2;
  train(config);
  step(ConnectionLost{member(worker(1)), "reset"});
  hello(worker(1));
  const std::vector<LeaseGrant> grants = sent<LeaseGrant>(worker(1));
  ASSERT_EQ(grants.size(), 5u);
  EXPECT_EQ(grants[2].lease, grants[0].lease);
  EXPECT_EQ(grants[3].lease, grants[1].lease);
  EXPECT_FALSE(grants[4].lease);
  EXPECT_TRUE(grants[4].last);
}

TEST_F(TrainingTest, ReturningPsIsAskedAgainToFence) {
  const JobId job = train(job_config("a"));
  answers_fence_ = false;
  kill(worker(0));
  answers_fence_ = true;
  step(ConnectionLost{member(ps(0)), "reset"});
  hello(ps(0));
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 2u);
  pass(seconds(6));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, ReturningTaskIsToldAgainToClose) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  answers_close_ = true;
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  EXPECT_EQ(sent<CloseJob>(worker(0)).size(), 2u);
  EXPECT_EQ(status(job).state, JobState::kStopping);
}

TEST_F(TrainingTest, ClosingJobDoesNotWaitForASilentTask) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  EXPECT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(status(job).reason, "killed by ada");
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(sent<CloseJob>(ps(0)).size(), 2u);
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

TEST_F(TrainingTest, SilentPsPausesTheJobAndItsReturnResumesIt) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos);
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, LostProcessesAreCountedByHowTheyWent) {
  start_chief(2, 2);
  hello_all();
  const auto losses = [this](TaskId task) {
    for (const TaskStatus& status : cluster_->tasks(now_))
      if (status.task == task) return status.losses;
    return Losses();
  };
  kill(worker(0));
  EXPECT_EQ(losses(worker(0)).left, 1u);
  hello(worker(0));
  EXPECT_EQ(status(submit(job_config("a"))).state, JobState::kRunning);
  pass(seconds(1));
  kill(worker(0));
  EXPECT_EQ(losses(worker(0)).crash, 1u);
  restart(ps(1));
  EXPECT_EQ(losses(ps(1)).replaced, 1u);
  silence(ps(0));
  pass(seconds(2));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(losses(ps(0)).silent, 1u);
  EXPECT_EQ(losses(ps(0)).crash + losses(ps(0)).left + losses(ps(0)).replaced, 0u);
}

TEST_F(TrainingTest, ChiefThatWasPausedItselfBlamesNobody) {
  const JobId job = train(job_config("a"));
  pass(seconds(1));
  now_ += seconds(20);
  step(Tick{});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, StallNamesTheTaskThatTheJobWaitsFor) {
  const JobId job = train(job_config("a"));
  report_pacer(5, 0);
  for (std::uint32_t i : {0u, 1u}) {
    heartbeats_[worker(i)].phase = i == 1 ? Phase::kCompute : Phase::kWait;
    heartbeats_[worker(i)].in_phase = seconds(30);
  }
  pass(seconds(59));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(1));
  EXPECT_NE(status(job).reason.find("worker/1 is in compute"), std::string::npos) << status(job).reason;
}

TEST_F(TrainingTest, FinishedWorkerHasTheStepsThatItReported) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  finish(job, worker(0));
  ASSERT_EQ(status(job).state, JobState::kFinished);
  EXPECT_EQ(status(job).tasks.back().figures.step, 10u);
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

TEST_F(TrainingTest, SyncLendsBlocksToTheWholeRosterAhead) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 2;
  train(config);
  for (std::uint32_t i : {0u, 1u}) {
    const std::vector<LeaseGrant> grants = sent<LeaseGrant>(worker(i));
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(grants[0].lease->rank, Rank(i));
    EXPECT_EQ(grants[0].lease->steps, 50u);
    EXPECT_EQ(grants[1].lease->first_step, Step(51));
    EXPECT_FALSE(grants[0].last);
    EXPECT_TRUE(grants[1].last);
  }
}

TEST_F(TrainingTest, SyncOverWholeSetsTellsThePacerItsNumberOfSteps) {
  JobConfig config = job_config("a", Mode::kSync);
  config.data.sharding = Sharding::kNone;
  config.train.epochs = 3;
  const JobId job = train(config);
  const auto create = std::find_if(sent_.begin(), sent_.end(), [](const Send& message) {
    return std::holds_alternative<CreateShards>(message.message);
  });
  EXPECT_EQ(std::get<CreateShards>(create->message).config->train.steps, 300u);
  EXPECT_EQ(status(job).steps_target, 300u);
}

// The job made steps with one worker. These steps still count when it goes on with two workers.
TEST_F(TrainingTest, TargetCountsStepsThatWereMadeWithOtherWorkers) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 3;
  const JobId job = train(config);
  EXPECT_EQ(status(job).steps_target, 150u);
  report_pacer(160, 1, {EpochLedger{1, {Interval{0, 600}}}});  // with one worker: 100 + 60 steps
  EXPECT_EQ(status(job).steps_target, 160u + 20 + 50);
  report_pacer(230, 3);
  EXPECT_EQ(status(job).steps_target, 230u);
}

TEST_F(TrainingTest, TargetIsNeverBehindTheSteps) {
  JobConfig config = job_config("a");
  config.train.epochs = 0;
  config.train.steps = 100;
  const JobId job = train(config);
  report_pacer(103, 0);
  EXPECT_EQ(status(job).steps_target, 103u);
}

TEST_F(TrainingTest, TargetOfWholeSetsShrinksWithALostWorker) {
  JobConfig config = job_config("a");
  config.data.sharding = Sharding::kNone;
  const JobId job = train(config);
  EXPECT_EQ(status(job).steps_target, 200u);
  heartbeats_[worker(0)].steps = 30;
  pass(seconds(1));
  kill(worker(0));
  EXPECT_EQ(status(job).steps_target, 130u);
}

TEST_F(TrainingTest, ModelThatDoesNotFitIsRefusedWithTheSum) {
  start_chief(1, 1);
  hello(worker(0));
  TaskHello big;
  big.member = Member{ps(0), Incarnation(5)};
  big.shards = 1;
  big.memory_bytes = 1 << 20;
  step(TaskJoined{big});
  const JobId job = submit(job_config("a"));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kConfig);
  EXPECT_NE(status(job).reason.find("may use 1 MiB"), std::string::npos) << status(job).reason;
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

TEST_F(TrainingTest, MessagesOfAnotherGenerationChangeNothing) {
  const JobId job = train(job_config("a"), 1);
  say(worker(0), WorkerFinished{job, Generation(2), 10});
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

}  // namespace
}  // namespace disttrain::chiefd
