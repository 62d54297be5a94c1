// The chief was restarted. The new chief continues the generation that the tasks already hold.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ReclaimTest : public RecoveryTest {
 protected:
  // Starts a new chief. All tasks connect to it, except the tasks in `lost`.
  void restart_chief_without(std::set<TaskId> lost) {
    for (const TaskId task : lost) silence(task);
    restart_chief();
    for (std::uint32_t i = 0; i < config_.ps.size(); ++i)
      if (lost.count(ps(i)) == 0) hello_again(ps(i));
    for (std::uint32_t i = 0; i < config_.workers.size(); ++i)
      if (lost.count(worker(i)) == 0) hello_again(worker(i));
  }
};

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

TEST_F(ReclaimTest, ChiefLearnsFromHeartbeatsHowTheWorkersAreConnected) {
  const JobId job = train(job_config("a"));
  const auto tell = [&](std::uint32_t i, Wires wires) {
    Heartbeat heartbeat;
    heartbeat.job = job;
    heartbeat.generation = Generation(1);
    heartbeat.wires = wires;
    say(worker(i), heartbeat);
  };
  for (const std::uint32_t i : {0u, 1u}) say(worker(i), JobOpened{job, Generation(1), kRdmaWire});
  EXPECT_EQ(status(job).wires, kRdmaWire);
  restart_chief_without({});
  EXPECT_EQ(status(job).wires, 0);
  for (const std::uint32_t i : {0u, 1u}) tell(i, kRdmaWire);
  EXPECT_EQ(status(job).wires, kRdmaWire);
  tell(1, kTcpWire);
  EXPECT_EQ(status(job).wires, kRdmaWire | kTcpWire);
  tell(0, kTcpWire);
  EXPECT_EQ(status(job).wires, kTcpWire) << "both have dialled again, over tcp";
  tell(0, 0);
  EXPECT_EQ(status(job).wires, kTcpWire) << "an older worker doesn't tell";
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

TEST_F(ReclaimTest, ExamplesThatAnEarlierChiefCountedAreNotCountedAgain) {
  const JobId job = train(job_config("a"));
  pacer_.examples = 300;
  report_pacer(30, 0);
  restart_chief_without({});
  EXPECT_EQ(status(job).examples, 300u);
  EXPECT_EQ(status(job).examples_heard, 0u);
  pacer_.examples = 320;
  report_pacer(32, 0);
  EXPECT_EQ(status(job).examples_heard, 20u);
}

TEST_F(ReclaimTest, RecoveriesThatAnEarlierChiefMadeCount) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  restart(ps(0));
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).recoveries, 1u);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).recoveries, 2u);
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

TEST_F(ReclaimTest, LeasesThatWereLentAreNotLentAgain) {
  JobConfig config = job_config("a");
  const JobId job = train(config);
  ask(job, worker(0));
  ask(job, worker(1));
  const std::uint64_t lent = records_of(sent<LeaseGrant>(worker(0))) + records_of(sent<LeaseGrant>(worker(1)));
  sent_.clear();
  restart_chief_without({});
  for (int i = 0; i < 50; ++i) ask(job, worker(i % 2));
  // When a worker says hello, the new chief sends all leases of this worker again. Each lease counts once here.
  std::set<LeaseId> seen;
  std::uint64_t after = 0;
  for (const std::uint32_t w : {0u, 1u})
    for (const LeaseGrant& grant : sent<LeaseGrant>(worker(w)))
      if (grant.lease && grant.lease->id.value > (std::uint64_t{2} << 32) && seen.insert(grant.lease->id).second)
        after += records_of({grant});
  EXPECT_EQ(lent + after, 1000u);
}

TEST_F(ReclaimTest, LeaseThatALostWorkerLeftAndAnotherGotIsNotTheLostOnesAgain) {
  const JobId job = train(job_config("a"));
  ask(job, worker(0));
  kill(worker(0));
  lend_all_to(job, worker(1));
  sent_.clear();
  restart_chief_without({worker(0)});
  pass(seconds(3));
  for (int i = 0; i < 50; ++i) ask(job, worker(1));
  std::uint64_t fresh = 0;
  for (const LeaseGrant& grant : sent<LeaseGrant>(worker(1)))
    if (grant.lease && grant.lease->id.value > (std::uint64_t{2} << 32)) fresh += records_of({grant});
  EXPECT_EQ(fresh, 0u) << "worker/1 holds all that there is";
}

// The former chief may have paused it, and the order to go on was lost with its connection.
TEST_F(ReclaimTest, WorkerThatReconnectsWhileThePacerIsAskedIsToldToGoOn) {
  const JobId job = train(job_config("a"));
  obedient_ = false;
  restart_chief_without({});
  const std::size_t before = sent<PauseJob>(worker(0)).size();
  hello_again(worker(0));
  ASSERT_EQ(sent<PauseJob>(worker(0)).size(), before + 1);
  EXPECT_FALSE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(sent<StartJob>(worker(0)).back().generation, generation(job));
}

// The evaluating worker is gone, so another one evaluates from now on. It reconnects before it can have heard of it.
TEST_F(ReclaimTest, WorkerThatReconnectsWhileThePacerIsAskedIsToldToEvaluate) {
  JobConfig config = job_config("a");
  config.evaluate.every_steps = 10;
  train(config);
  report_pacer(30, 0);
  obedient_ = false;
  restart_chief_without({worker(0)});
  while (sent<SetEvaluator>(worker(1)).empty()) pass(milliseconds(100));
  hello_again(worker(1));
  EXPECT_EQ(sent<SetEvaluator>(worker(1)).size(), 2u);
}

TEST_F(ReclaimTest, WorkerThatIsLostBeforeTheTasksAreTogetherLeavesTheOthersLeasesInTheJournal) {
  const JobId job = train(job_config("a"));
  ask(job, worker(0));
  ask(job, worker(1));
  const LeaseId held = sent<LeaseGrant>(worker(1)).back().lease->id;
  obedient_ = false;
  restart_chief_without({});
  kill(worker(0));
  for (const std::uint32_t s : {0u, 1u})
    say(ps(s), WorkerFenced{job, Generation(1), ShardId(s), member(worker(0)), Sequence(0), Step(0)});
  const RosterVersion newest = sent<SetRoster>(ps(0)).back().roster.version;
  say(ps(0), RosterApplied{job, Generation(1), newest, Step(0), pacer_});
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(journal_.jobs.at(job).grants.count(held), 1u) << "a later chief would lend these records again";
}

TEST_F(ReclaimTest, PsThatIsGoneMeansARollback) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0)});
  EXPECT_EQ(status(job).state, JobState::kRunning) << "others may have said hello already: nobody is blamed in a hurry";
  pass(seconds(7));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  restart(ps(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

// If the chief's host vanishes, a task's connection to it isn't reset. The task dials again only after the chief has
// been silent for long.
TEST_F(ReclaimTest, NewChiefWaitsForALatePsAndThenForWorkersForAWhile) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0), worker(1)});
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  hear_again(ps(0));
  hello_again(ps(0));
  pass(seconds(1));
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(ReclaimTest, PsThatWasRestartedMeanwhileMeansARollback) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0)});
  restart(ps(0));
  pass(milliseconds(100));  // the new process has the place, so the former one is surely gone
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_NE(event("rolled_back").find("how many isn't known"), std::string::npos) << event("rolled_back");
}

// The first worker that is back may be one that can't take part.
TEST_F(ReclaimTest, RollbackAfterARestartAwaitsTheOtherWorkersForAWhile) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0), worker(1)});
  restart(ps(0));
  pass(milliseconds(100));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(9));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(ReclaimTest, StepOfTheNewestCheckpointIsKnownBeforeThePacerHasSpoken) {
  JobConfig config = with_checkpoints();
  config.checkpoint.every_steps = 20;
  const JobId job = train(config);
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  restart_chief();
  EXPECT_EQ(status(job).global_step, 20u);
  ASSERT_FALSE(folder_work_.empty());
  EXPECT_EQ(std::get<OpenFolder>(folder_work_.back().work).committed, "/checkpoints/a/step");
}

TEST_F(ReclaimTest, StepOfADamagedCheckpointOfAGenerationBeforeIsNotTheJobs) {
  const JobId job = train(with_checkpoints());
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  journal_.jobs.at(job).generation.generation = Generation(2);
  journal_.jobs.at(job).generation.restore_step = Step(10);
  restart_chief();
  EXPECT_EQ(status(job).global_step, 10u);
}

TEST_F(ReclaimTest, FolderThatCannotBeOpenedIsAskedForAgain) {
  const JobId job = train(with_checkpoints());
  folder_error_ = Error{ErrorCode::kNoInput, "there is no /checkpoints"};
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).checkpoints.failures, 1u) << "none can be begun";
  folder_error_.reset();
  folder_work_.clear();
  pass(seconds(2));
  ASSERT_EQ(folder_work_.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<OpenFolder>(folder_work_.back().work));
}

TEST_F(ReclaimTest, NewChiefOfARecoveringJobWaitsForAFolderThatIsAway) {
  const JobId job = train(with_checkpoints());
  obedient_ = false;
  kill(ps(0));
  restart(ps(0));
  obedient_ = true;
  folder_error_ = Error{ErrorCode::kNoInput, "there is no /checkpoints"};
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  EXPECT_EQ(status(job).checkpoints.failures, 0u) << "it is there to be gone on from";
  folder_error_.reset();
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(ReclaimTest, WorkerThatIsGoneIsFencedAndItsRecordsAreLentAgain) {
  const JobId job = train(job_config("a"));
  ask(job, worker(0));
  restart_chief_without({worker(0)});
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(sent<FenceWorker>(ps(0)).back().worker.task, worker(0));
  for (int i = 0; i < 50; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u);
}

// The cluster file doesn't list worker/9, and worker/9 never says hello to the new chief.
TEST_F(ReclaimTest, UnlistedWorkerThatIsGoneIsFencedToo) {
  config_.allow_unlisted_workers = true;
  const JobId job = train(job_config("a"));
  hello(worker(9));
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members.back(), member(worker(9)));
  ask(job, worker(9));
  restart_chief_without({worker(9)});
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(sent<FenceWorker>(ps(0)).back().worker.task, worker(9));
  for (int i = 0; i < 50; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u) << "what worker/9 had is lent again";
}

// The second new chief knows the loss from the journal, and never heard of worker/9.
TEST_F(ReclaimTest, JobThatWaitsForAnUnlistedWorkerThatWasLostTooOftenFails) {
  config_.allow_unlisted_workers = true;
  start_chief(2, 1);
  hello_all();
  hello(worker(9));
  JobConfig config = job_config("a");
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  config.job.max_restarts = 0;
  config.job.min_workers = 2;
  const JobId job = submit(config);
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (int i = 0; i < 2; ++i) {
    restart_chief_without({worker(9)});
    pass(seconds(30));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_NE(status(job).reason.find("worker/9: it was lost more than job.max_restarts (0) times"), std::string::npos)
      << status(job).reason;
}

// The shards have fenced this incarnation of the worker.
TEST_F(ReclaimTest, WorkerThatAChiefBeforeRemovedComesBackAsAnother) {
  const JobId job = train(job_config("a"), 2);
  silence(worker(1));
  pass(seconds(3));
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
  restart_chief();
  sent_.clear();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  hello_again(worker(0));
  pass(seconds(3));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  const Heartbeat held = heartbeats_[worker(1)];
  hello_again(worker(1));
  EXPECT_TRUE(sent<DescribeJob>(worker(1)).empty());
  say(worker(1), held);
  ASSERT_FALSE(sent<CloseJob>(worker(1)).empty());
  EXPECT_TRUE(sent<CloseJob>(worker(1)).back().removed);
  restart(worker(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
}

TEST_F(ReclaimTest, FailedJobKeepsItsLastFigures) {
  const JobId job = train(job_config("a"));
  obedient_ = false;
  const Heartbeat open = heartbeats_[ps(0)];
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kData, "its loss isn't finite"});
  heartbeats_[ps(0)] = open;
  report_pacer(11, 0);  // the pacer reports once more while the job closes
  for (const std::uint32_t i : {0u, 1u}) {
    say(ps(i), JobClosed{job});
    say(worker(i), JobClosed{job});
  }
  ASSERT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  const JobStatus before = status(job);
  ASSERT_EQ(before.global_step, 11u);
  restart_chief();
  EXPECT_EQ(status(job).global_step, before.global_step);
  EXPECT_EQ(status(job).examples, before.examples);
  EXPECT_EQ(status(job).reason, before.reason);
}

TEST_F(ReclaimTest, ComplaintIsHeardWhereTheRosterNamesAWorkerThatTheNewChiefDoesNotKnow) {
  config_.allow_unlisted_workers = true;
  const JobId job = train(job_config("a"));
  hello(worker(7), 77);
  ASSERT_EQ(count_sent<OpenJob>(), 3u);
  restart_chief();
  hello_again(ps(1));
  hello_again(worker(0));
  hello_again(worker(1));
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "lost shard 0 at ps/0"});
  restart(ps(0));
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

TEST_F(ReclaimTest, WorkerThatHoldsNothingIsAskedToOpenAtTheStepWhereTheJobIs) {
  const JobId job = train(job_config("a", Mode::kSync));
  report_pacer(30, 0);
  heartbeats_[worker(1)] = Heartbeat{};
  sent_.clear();
  restart_chief_without({});
  pass(seconds(3));
  ASSERT_EQ(sent<OpenJob>(worker(1)).size(), 1u);
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().clock, Step(30));
  EXPECT_EQ(sent<OpenJob>(worker(0)).size(), 0u);
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// The former chief hasn't heard that the worker can't open the job.
TEST_F(ReclaimTest, WorkerThatCouldNotOpenTheJobIsAskedAgain) {
  const JobId job = train(job_config("a"));
  heartbeats_[worker(1)].generation = Generation();
  sent_.clear();
  restart_chief_without({});
  pass(seconds(3));
  ASSERT_EQ(sent<OpenJob>(worker(1)).size(), 1u);
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(ReclaimTest, WorkerThatJoinsIsAskedAgainWhenItReconnects) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  restart(worker(1));
  pass(seconds(1));
  kill(worker(1));
  obedient_ = false;
  restart(worker(1));
  say(worker(1), JobDescribed{job, model_, records_, 0});
  pass(seconds(2));
  say(ps(0), RosterApplied{job, Generation(1), sent<SetRoster>(ps(0)).back().roster.version, Step(0), pacer_});
  pass(seconds(2));
  const std::size_t asked = sent<OpenJob>(worker(1)).size();
  ASSERT_GE(asked, 2u);
  step(ConnectionLost{member(worker(1)), "reset"});
  hello(worker(1));
  EXPECT_EQ(sent<OpenJob>(worker(1)).size(), asked + 1);
}

TEST_F(ReclaimTest, NewChiefOfARecoveringJobWaitsForARankThatIsAway) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  for (const bool is_written : {false, true}) {
    kill(ps(0));
    obedient_ = false;
    if (is_written) restart(ps(0));  // the journal has the next generation, but no task has opened it
    restart_chief_without({worker(1)});
    obedient_ = true;
    if (!is_written) restart(ps(0));
    pass(seconds(10));
    EXPECT_NE(status(job).state, JobState::kRunning) << "without worker/1 it isn't the same training";
    EXPECT_NE(status(job).reason.find("worker/1"), std::string::npos) << status(job).reason;
    restart(worker(1));
    pass(seconds(1));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(journal_.jobs.at(job).roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
  }
}

TEST_F(ReclaimTest, RecoveryThatTheChiefBeforeBeganIsEndedAndTold) {
  const JobId job = train(job_config("a"));
  for (const bool is_written : {false, true}) {
    report_pacer(30, 0);
    const auto losses = [this] {
      return std::count_if(journal_.events.begin(), journal_.events.end(),
                           [](const EventRecord& event) { return event.kind == kLossCounted; });
    };
    const auto before = losses();
    obedient_ = false;
    kill(ps(0));
    if (is_written) restart(ps(0));
    pass(seconds(2));
    obedient_ = true;
    pacer_ = PacerReport();
    heartbeats_[ps(0)].pacer.reset();
    if (is_written) {
      restart_chief_without({});
    } else {
      restart_chief_without({ps(0)});
      EXPECT_EQ(status(job).global_step, 30u);
      restart(ps(0));
    }
    pass(seconds(1));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(losses(), before + 1) << "one outage is one loss";
    const std::string told = event("rolled_back");
    EXPECT_NE(told.find("30 steps are lost"), std::string::npos) << told;
    EXPECT_NE(told.find("cause: ps/0: "), std::string::npos) << told;
  }
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

TEST_F(ReclaimTest, NewChiefGoesOnWithoutAPsWhoseShardsTheOthersWereTaking) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  kill(ps(1));
  obedient_ = false;
  pass(seconds(10));
  ASSERT_EQ(generation(job), Generation(2));
  ASSERT_FALSE(journal_.jobs.at(job).is_training);
  obedient_ = true;
  restart_chief_without({ps(1)});
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).recoveries, 1u);
}

TEST_F(ReclaimTest, CheckpointIsDueByItsTimeHoweverOftenTheChiefIsRestarted) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  config.checkpoint.every = seconds(10);
  train(config);
  for (int i = 0; i < 3; ++i) {
    pass(seconds(4));
    restart_chief_without({});
  }
  report_pacer(30, 0);
  EXPECT_TRUE(std::any_of(folder_work_.begin(), folder_work_.end(),
                          [](const FolderWork& work) { return std::holds_alternative<BeginAttempt>(work.work); }));
}

TEST_F(ReclaimTest, LastFiguresOfAJobAreKnownToLaterChiefs) {
  JobConfig config = job_config("a");
  config.evaluate.files = "t";
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  lend_all(job);
  pacer_.loss = 0.25;
  pacer_.examples = 1000;
  const std::vector<MetricValue> trained = {{"accuracy", 0.5}};
  heartbeats_[worker(0)].metrics = trained;
  pass(std::chrono::milliseconds(100));
  report_pacer(100, 1);
  finish(job, worker(0));
  Evaluated evaluated;
  evaluated.job = job;
  evaluated.generation = Generation(1);
  evaluated.step = Step(100);
  evaluated.metrics = {{"accuracy", 0.75}};
  evaluated.examples = 10;
  evaluated.final = true;
  say(worker(0), evaluated);
  for (int i = 0; i < 2; ++i) {
    const JobStatus known = status(job);
    ASSERT_EQ(known.state, JobState::kFinished) << known.reason;
    EXPECT_EQ(known.global_step, 100u);
    EXPECT_EQ(known.steps_target, 100u);
    EXPECT_EQ(known.examples, 1000u);
    EXPECT_EQ(known.loss, 0.25);
    ASSERT_TRUE(known.evaluation);
    EXPECT_EQ(known.evaluation->metrics, evaluated.metrics);
    EXPECT_EQ(known.metrics, trained);
    restart_chief();
  }
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

TEST_F(ReclaimTest, NoLossIsShownBeforeAPacerHasReported) {
  JobConfig config = with_checkpoints();
  const JobId job = train(config);
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  pacer_.loss = 0.5;
  report_pacer(30, 0);
  EXPECT_EQ(status(job).loss, 0.5);
  restart_chief();
  EXPECT_FALSE(status(job).loss);
}

TEST_F(ReclaimTest, NextCheckpointIsDueWhereItWas) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  config.checkpoint.every_steps = 20;
  train(config);
  report_pacer(20, 0);
  const auto commits = [this] {
    return std::count_if(folder_work_.begin(), folder_work_.end(),
                         [](const FolderWork& work) { return std::holds_alternative<CommitAttempt>(work.work); });
  };
  ASSERT_EQ(commits(), 1);
  restart_chief_without({});
  report_pacer(39, 0);
  EXPECT_EQ(commits(), 1);
  report_pacer(40, 0);
  EXPECT_EQ(commits(), 2);
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
