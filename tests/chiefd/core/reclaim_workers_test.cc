// The chief was restarted. Some workers of its job come back to the new chief, and others are gone. The new chief lends
// each record once.
#include "tests/chiefd/core/reclaim_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

}  // namespace
}  // namespace disttrain::chiefd
