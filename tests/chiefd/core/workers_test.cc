// While a job trains, workers are lost, come back, and join.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

using WorkersTest = TrainingTest;

TEST_F(WorkersTest, LostWorkerInSyncShrinksTheRosterAndItsBlocksAreLentAnew) {
  JobConfig config = job_config("a", Mode::kSync);
  const JobId job = train(config);
  ask(job, worker(0));
  const RosterVersion before = sent<SetRoster>(ps(0)).back().roster.version;
  kill(worker(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
  const LeaseGrant grant = sent<LeaseGrant>(worker(0)).back();
  ASSERT_TRUE(grant.lease);
  EXPECT_GT(grant.lease->roster, before);
  EXPECT_EQ(grant.lease->ranks, 1u);
}

// worker/0 has used up the blocks of the roster that had worker/1, and doesn't hear of the next roster in time.
TEST_F(WorkersTest, FinishedWorkerIsCalledBackForTheRecordsOfALostOne) {
  const JobId job = train(job_config("a", Mode::kSync));
  for (int i = 0; i < 100; ++i) ask(job, worker(0));
  report_pacer(49, 0, {EpochLedger{0, {{0, 980}}}});
  kill(worker(1));
  finish(job, worker(0));
  report_pacer(49, 0, {EpochLedger{0, {{0, 980}}}});
  pass(seconds(5));
  ASSERT_FALSE(sent<CloseJob>(worker(0)).empty());
  EXPECT_TRUE(sent<CloseJob>(worker(0)).back().removed);
  restart(worker(0));
  pass(seconds(2));
  ask(job, worker(0));
  std::vector<LeaseGrant> grants = sent<LeaseGrant>(worker(0));
  const RosterVersion newest = sent<SetRoster>(ps(0)).back().roster.version;
  std::erase_if(grants, [&](const LeaseGrant& grant) { return !grant.lease || grant.lease->roster != newest; });
  ASSERT_FALSE(grants.empty());
  EXPECT_EQ(records_of({grants.back()}), 20u) << "a grant may be repeated";
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// worker/0 finishes when the chief has just made a roster with it and with worker/1, which has come back.
TEST_F(WorkersTest, FinishedWorkerIsTakenOutOfTheRosterThatHasAnotherOne) {
  const JobId job = train(job_config("a", Mode::kSync));
  for (int i = 0; i < 100; ++i) ask(job, worker(0));
  report_pacer(49, 0, {EpochLedger{0, {{0, 980}}}});
  kill(worker(1));
  restart(worker(1));
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
  finish(job, worker(0));
  report_pacer(49, 0, {EpochLedger{0, {{0, 980}}}});
  pass(seconds(5));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
  EXPECT_TRUE(sent<CloseJob>(worker(0)).empty());
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(WorkersTest, RosterIsDurableBeforeThePacerHearsOfIt) {
  train(job_config("a"));
  disk_is_held_ = true;
  kill(worker(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 1u);
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 0u);
  release_disk();
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 2u);
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 1u);
}

TEST_F(WorkersTest, RestartedWorkerReadsTheDataFirstAndThenJoins) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  obedient_ = false;
  restart(worker(1));
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 1u) << "nobody waits for it while it reads";
  obedient_ = true;
  say(worker(1), JobDescribed{job, model_, records_, 0});
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().generation, Generation(1));
  EXPECT_EQ(sent<StartJob>(worker(1)).size(), 2u);
}

TEST_F(WorkersTest, WorkerThatFindsOtherRecordsOfTheSameNumberIsRefused) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  train_hash_ = 7;
  restart(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 1u);
  EXPECT_NE(event("worker_refused").find("other training records"), std::string::npos) << event("worker_refused");
}

TEST_F(WorkersTest, WorkerThatFindsOtherDataIsRefusedAndTheOthersGoOn) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  records_ = 999;
  restart(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 1u);
  EXPECT_NE(event("worker_refused").find("999 training records"), std::string::npos) << event("worker_refused");
}

// A worker's message about an older generation may arrive late.
TEST_F(WorkersTest, WorkerThatReadsTheDataAndComplainsOfAnOldGenerationJoinsAllTheSame) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  restart(ps(0));
  ASSERT_EQ(generation(job), Generation(2));
  kill(worker(1));
  obedient_ = false;
  restart(worker(1));
  say(worker(1), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  obedient_ = true;
  say(worker(1), JobDescribed{job, model_, records_, 0});
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
}

TEST_F(WorkersTest, ComplaintOfAnOldGenerationIsNoAnswerToTheDescription) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  say(worker(0), TaskFailed{job, Generation(0), ErrorCode::kData, "labels are corrupt"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(WorkersTest, LastWorkerLostPausesTheJobUntilOneIsBack) {
  const JobId job = train(job_config("a"), 1);
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("0 of at least 1 workers"), std::string::npos) << status(job).reason;
  pass(seconds(30));
  restart(worker(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1)) << "no step is lost";
}

TEST_F(WorkersTest, LastWorkerLostPausesAJobWithoutLeasesToo) {
  JobConfig config = job_config("a");
  config.data.sharding = Sharding::kNone;
  const JobId job = train(config, 1);
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
}

TEST_F(WorkersTest, FewerThanMinWorkersPauseTheOthersAndFailTheJobInTheEnd) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  config.job.workers_timeout = seconds(120);
  const JobId job = train(config);
  kill(worker(1));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  pass(seconds(121));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).reason,
            "1 of at least 2 workers are there; waiting for others for 120 s (job.workers_timeout)");
}

// In sync the roster of a worker that joins is without those that have finished. They are there all the same.
TEST_F(WorkersTest, WorkersThatHaveFinishedCountForMinWorkers) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.min_workers = 3;
  const JobId job = train(config, 4);
  lend_all(job);
  finish(job, worker(0));
  finish(job, worker(3));
  kill(worker(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  kill(worker(2));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_EQ(status(job).reason, "2 of at least 3 workers are there; waiting for others");
  restart(worker(1));
  restart(worker(2));
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(1)), member(worker(2))}));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// It was invited, and doesn't take part yet.
TEST_F(WorkersTest, JobEndsAsSoonAsAWorkerThatPreparesHasReleasedIt) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  obedient_ = false;
  restart(worker(1));
  ASSERT_EQ(sent<DescribeJob>(worker(1)).size(), 1u);
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  for (const TaskId task : {ps(0), ps(1), worker(0)}) say(task, JobClosed{job});
  EXPECT_TRUE(ended_.empty());
  say(worker(1), JobClosed{job});
  EXPECT_EQ(ended_, std::vector<JobId>{job});
}

// A faulty worker: nobody owns a shard yet.
TEST_F(WorkersTest, RosterThatAWorkerSaysItHasAppliedIsNone) {
  JobConfig config = job_config("a");
  config.checkpoint.directory = "/checkpoints";
  folder_is_held_ = true;
  start_chief(2, 1);
  hello_all();
  const JobId job = submit(config);
  say(worker(0), RosterApplied{job, Generation(), RosterVersion(1), Step(), PacerReport()});
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
}

TEST_F(WorkersTest, JobWithAllRecordsVisitedWaitsForNoWorker) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  const JobId job = train(config);
  lend_all(job);
  report_pacer(100, 1);
  kill(worker(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kFinished);
}

TEST_F(WorkersTest, WaitKeepsTheRankForTheSuccessor) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("waiting for worker/0"), std::string::npos) << status(job).reason;
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 1u);
  restart(worker(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
}

TEST_F(WorkersTest, WorkerThatWasLostTooOftenIsNotTakenBackAndTheReasonIsTold) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  const JobId job = train(config);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(status(job).reason, "trains with 2 workers");
    kill(worker(1));
    EXPECT_EQ(status(job).reason, "trains with 1 worker");
    restart(worker(1));
    pass(seconds(2));
  }
  const std::string why =
      "can't rejoin the job: it was lost 2 times within job.restart_window, and job.max_restarts is 1; the last loss: "
      "its "
      "connection closed and nobody listens at host:7121 any more";
  EXPECT_EQ(status(job).reason, "trains with 1 worker; worker/1 " + why);
  EXPECT_EQ(event("worker_refused"), "worker/1 " + why);
  EXPECT_EQ(status(job).tasks.back().task, worker(1));
  EXPECT_EQ(status(job).tasks.back().reason, why);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).reason, "trains with 1 worker; worker/1 " + why) << "a rollback takes nobody back either";
}

// Both workers hang again and again, and one of them is back each time before the other is lost.
TEST_F(WorkersTest, LossOfAWorkerRestartsTheStallsClock) {
  JobConfig config = job_config("a");
  config.job.stall_timeout = seconds(10);
  const JobId job = train(config);
  for (const TaskId hung : {worker(0), worker(1), worker(0), worker(1)}) {
    pass(seconds(6));
    kill(hung);
    restart(hung);
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
  pass(seconds(9));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("; before that the job lost worker/1: "), std::string::npos) << status(job).reason;
}

TEST_F(WorkersTest, LossesWithoutAStepRestartTheStallsClockNoLongerThanTheRestartWindow) {
  JobConfig config = job_config("a");
  config.job.stall_timeout = seconds(10);
  config.job.restart_window = seconds(20);
  config.job.max_restarts = 100;
  const JobId job = train(config, 3);
  std::uint32_t losses = 0;
  for (; status(job).state == JobState::kRunning && losses < 20; ++losses) {
    const TaskId hung = worker(losses % 3);
    kill(hung);
    restart(hung);
    pass(seconds(5));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_LE(losses, 6u);
}

TEST_F(WorkersTest, NoMoreWorkersJoinThanTheShardsHaveMemoryFor) {
  config_.allow_unlisted_workers = true;
  const JobId job = train(job_config("a"));
  const std::uint32_t places = sent<CreateShards>(ps(0)).back().places;
  for (std::uint32_t i = 2; i < places + 2; ++i) hello(worker(i), 500 + i);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), places);
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  for (std::uint32_t i = 0; i < places + 2; ++i) hello_again(worker(i));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), places);
}

// With one worker the chief cuts the model into more buckets. When others have joined, the buckets stay.
TEST_F(WorkersTest, WorkerThatJoinsARestartedChiefGetsTheLayoutOfTheFirst) {
  config_.allow_unlisted_workers = true;
  train(job_config("a"), 1);
  const Layout layout = sent<CreateShards>(ps(0)).back().layout;
  EXPECT_EQ(layout.buckets.size(), 2u);
  hello(worker(7));
  pass(seconds(1));
  EXPECT_EQ(sent<OpenJob>(worker(7)).back().layout, layout);
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(7)}) hello_again(task);
  pass(seconds(1));
  hello(worker(8));
  pass(seconds(1));
  EXPECT_EQ(sent<OpenJob>(worker(8)).back().layout, layout);
}

TEST_F(WorkersTest, RemovedProcessThatComesBackIsNotTakenForAnother) {
  train(job_config("a"));
  TaskHello again = hello_of(worker(1));
  again.member.incarnation = Incarnation(999);
  join(again);
  EXPECT_EQ(event("task_lost"), "worker/1: it has started over (pid 1001 on host)");
  again.member.incarnation = Incarnation(1000);
  again.pid = 2000;
  join(again);
  EXPECT_EQ(event("task_lost"), "worker/1: another process (pid 2000 on host) took its place");
}

TEST_F(WorkersTest, UnlistedWorkerJoinsWhereTheClusterAllowsIt) {
  config_.allow_unlisted_workers = true;
  const JobId job = train(job_config("a"));
  hello(worker(7));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.back(), member(worker(7)));
}

TEST_F(WorkersTest, WorkerThatDiesAgainAndAgainIsLeftOutWhileTheOthersTrain) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = train(config);
  for (int loss = 0; loss < 3; ++loss) {
    kill(worker(1));
    restart(worker(1));
    pass(seconds(12));
  }
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 1u);
}

TEST_F(WorkersTest, JobWhoseWorkersWereAllLostTooOftenFailsWithTheLastLoss) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  const JobId job = train(config, 1);
  for (int loss = 0; loss < 2; ++loss) {
    kill(worker(0));
    restart(worker(0));
    pass(seconds(12));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("worker/0: it was lost more than job.max_restarts (1) times"), std::string::npos)
      << status(job).reason;
  EXPECT_NE(status(job).reason.find("the last loss: its connection closed"), std::string::npos) << status(job).reason;
}

TEST_F(WorkersTest, JobWaitsForAWorkerThatWasLostTooOftenWhileAnotherOneMayCome) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.min_workers = 1;
  const JobId job = train(config, 2);
  for (int loss = 0; loss < 2; ++loss) {
    kill(worker(0));
    restart(worker(0));
    pass(seconds(12));
  }
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(WorkersTest, SilentWorkerIsRemovedAndToldSoWhenItReturns) {
  const JobId job = train(job_config("a"), 3);
  silence(worker(2));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
  say(worker(2), heartbeats_[worker(2)]);
  EXPECT_TRUE(sent<CloseJob>(worker(2)).back().removed) << "it comes back as another incarnation";
}

TEST_F(WorkersTest, ChiefToWhichMostTasksFallSilentSuspectsItselfForAWhile) {
  const JobId job = train(job_config("a"), 3);
  for (std::uint32_t i = 0; i < 3; ++i) silence(worker(i));
  pass(seconds(3));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 1u);
  pass(seconds(4));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("0 of at least 1 workers"), std::string::npos) << status(job).reason;
}

TEST_F(WorkersTest, LastToReturnToAChiefThatSuspectedItselfIsWaitedForOneTimeoutMore) {
  const JobId job = train(job_config("a"), 3);
  for (std::uint32_t i = 0; i < 3; ++i) silence(worker(i));
  pass(seconds(3));
  for (const std::uint32_t i : {0u, 1u}) hear_again(worker(i));
  pass(std::chrono::milliseconds(500));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 1u) << "worker/2 is a little later than the others";
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 2u) << "worker/2 stays away";
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(WorkersTest, DescriberThatDiesIsTriedAgainUpToMaxRestarts) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = submit(config);
  for (int loss = 0; loss < 2; ++loss) {
    kill(worker(0));
    restart(worker(0));
    ASSERT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  }
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, worker(0));
  EXPECT_NE(status(job).reason.find("job.max_restarts is 2"), std::string::npos) << status(job).reason;
}

TEST_F(WorkersTest, DescriptionBeginsAgainWithoutAWorkerThatComesAndGoes) {
  start_chief(1, 3);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  for (int i = 0; i < 10; ++i) {
    kill(worker(2));
    pass(seconds(1));
    restart(worker(2));
  }
  EXPECT_LE(sent<DescribeJob>(worker(0)).size(), 4u);
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  EXPECT_EQ(sent<CreateShards>(ps(0)).front().roster.members.size(), 2u);
}

}  // namespace
}  // namespace disttrain::chiefd
