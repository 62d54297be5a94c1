// A ps is lost, or the chief itself was: the job begins another generation, or goes on with the one that trains.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RecoveryTest : public TrainingTest {
 protected:
  static JobConfig with_checkpoints(Mode mode = Mode::kAsync) {
    JobConfig config = job_config("a", mode);
    config.checkpoint.directory = "/checkpoints";
    return config;
  }
  static RestorePoint restore_point(std::uint64_t step) {
    PacerReport pacer;
    pacer.global_step = Step(step);
    return RestorePoint{"/checkpoints/a/step", Generation(1), Step(step), pacer, 1000, {}};
  }
};

TEST_F(RecoveryTest, LostPsIsWaitedForAndTheJobBeginsAgainWithIt) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos) << status(job).reason;
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  pacer_ = PacerReport();
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "");
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().generation, Generation(2));
  EXPECT_NE(event("rolled_back").find("30 steps are lost"), std::string::npos) << event("rolled_back");
}

TEST_F(RecoveryTest, EveryShardBeginsWithTheNewestCheckpointThoseOfLivingPsToo) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  report_pacer(30, 0);
  newest_ = restore_point(20);
  kill(ps(1));
  restart(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (const std::uint32_t i : {0u, 1u})
    EXPECT_EQ(sent<CreateShards>(ps(i)).back().restore_path, "/checkpoints/a/step") << i;
  EXPECT_NE(event("rolled_back").find("10 steps are lost"), std::string::npos) << event("rolled_back");
}

TEST_F(RecoveryTest, GenerationIsDurableBeforeItsShardsAreCreated) {
  train(job_config("a"));
  disk_is_held_ = true;
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(1));
  release_disk();
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(2));
}

TEST_F(RecoveryTest, GenerationIsBeyondAllThatTheFolderHolds) {
  newest_ = restore_point(20);
  newest_->generation = Generation(7);
  const JobId job = train(with_checkpoints());
  EXPECT_EQ(generation(job), Generation(8));
}

TEST_F(RecoveryTest, ShardsOfAPsThatStaysAwayAreTakenByTheOthers) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  pass(seconds(4));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().owners.front().ps, member(ps(1)));
}

TEST_F(RecoveryTest, JobWhosePsAllStayAwayFailsAtItsDeadline) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  kill(ps(1));
  pass(seconds(119));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, LossOnTheWayBeginsAgainWithTheNextGeneration) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  EXPECT_EQ(generation(job), Generation(2));
  kill(ps(0));
  obedient_ = true;
  restart(ps(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(3));
}

TEST_F(RecoveryTest, WorkerLostWithThePsIsNotWaitedFor) {
  const JobId job = train(job_config("a"));
  kill(worker(1));
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(RecoveryTest, MoreLossesThanMaxRestartsFailTheJobWithTheRootCause) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 3;
  const JobId job = train(config);
  for (int loss = 1; loss <= 3; ++loss) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(15));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
  EXPECT_NE(status(job).reason.find("max_restarts is 3"), std::string::npos) << status(job).reason;
}

TEST_F(RecoveryTest, LossesUnderFormerChiefsCount) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 3;
  const JobId job = train(config);
  for (int loss = 1; loss <= 3; ++loss) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(15));
    restart_chief();
    for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  }
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, LossesBeforeTheWindowDontCountWhateverChiefHadThem) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(31));
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
}

TEST_F(RecoveryTest, RecoveriesWithoutAStepBetweenThemWaitLongerEachTime) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  restart(ps(0));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << "it waits";
  pass(milliseconds(300));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  report_pacer(5, 0);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << "there was progress: at once again";
}

TEST_F(RecoveryTest, DamagedCheckpointIsSetAsideAndTheOneBeforeTaken) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  ASSERT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/step");
  newest_ = restore_point(10);
  newest_->path = "/checkpoints/a/before";
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kData, "bucket 3 has another checksum"});
  ASSERT_TRUE(std::holds_alternative<SetAside>(folder_work_.back().work));
  EXPECT_EQ(std::get<SetAside>(folder_work_.back().work).path, "/checkpoints/a/step");
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/before");
  EXPECT_NE(event("checkpoint_broken"), "no event of this kind");
}

TEST_F(RecoveryTest, PsThatCannotReadTheCheckpointTriesAgain) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  obedient_ = true;
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kFailed, "can't read: input/output error"});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(3));
}

TEST_F(RecoveryTest, PsWhoseFolderIsAwayTriesAgainWhereItWasTheRightOneBefore) {
  JobConfig config = with_checkpoints();
  config.job.max_restarts = 2;
  const JobId job = train(config);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  const Generation first = generation(job);
  say(ps(0), TaskFailed{job, first, ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(1));
  ASSERT_EQ(generation(job), first.next());
  say(ps(0), TaskFailed{job, first.next(), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kFailed) << "max_restarts bounds it";
}

TEST_F(RecoveryTest, PsThatSeesAnotherFolderIsSaidAtOnceWhenTheJobIsNew) {
  start_chief(1, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(with_checkpoints());
  obedient_ = true;
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  say(ps(0), TaskFailed{job, Generation(1), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, CheckpointOfOtherDataIsRefused) {
  newest_ = restore_point(20);
  newest_->records = 999;
  start_chief(2, 1);
  hello_all();
  const JobId job = submit(with_checkpoints());
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("999 training records"), std::string::npos) << status(job).reason;
}

// ---- how a loss is known

TEST_F(RecoveryTest, PsWhosePortOutlivedItsConnectionIsProbedAgain) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  step(ConnectionLost{member(ps(0)), "reset"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kNoAnswer});
  const std::size_t probed = probes().size();
  pass(milliseconds(100));
  ASSERT_EQ(probes().size(), probed + 1);
  EXPECT_EQ(status(job).state, JobState::kRunning);
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kPaused);
}

TEST_F(RecoveryTest, SilentPsWhoseConnectionStandsIsProbedUntilItIsProvedDead) {
  const JobId job = train(job_config("a"));
  silence(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  ASSERT_FALSE(probes().empty());
  EXPECT_EQ(probes().back().member, member(ps(0)));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kNoAnswer});
  const std::size_t probed = probes().size();
  pass(milliseconds(100));
  ASSERT_EQ(probes().size(), probed + 1);
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_NE(status(job).reason.find("waiting for ps/0"), std::string::npos) << status(job).reason;
}

TEST_F(RecoveryTest, SilentPsIsWaitedForAsLongAsARollbackWouldCost) {
  const JobId job = train(job_config("a"));
  pass(seconds(20));
  silence(ps(0));
  pass(seconds(15));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_EQ(generation(job), Generation(1)) << "20 s of work would be lost";
  pass(seconds(15));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2)) << "waiting has cost more than they";
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().generation, Generation(2)) << "the other ps has its shards";
}

TEST_F(RecoveryTest, ComplaintAboutALostPsIsNotTheRootCause) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  EXPECT_EQ(status(job).state, JobState::kRunning);
  ASSERT_FALSE(probes().empty());
  silence(ps(0));
  pass(milliseconds(800));  // the ps may die slowly, and its connection close late
  EXPECT_EQ(status(job).state, JobState::kRunning);
  step(ConnectionLost{member(ps(0)), "reset"});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos);
  EXPECT_EQ(sent<CloseJob>(worker(0)).size(), 0u);
}

TEST_F(RecoveryTest, WorkerWhoseComplaintNothingExplainsLeavesTheJob) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
}

TEST_F(RecoveryTest, EachComplaintThatNothingExplainsCounts) {
  const JobId job = train(job_config("a"), 3);
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  say(worker(1), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(2))});
}

TEST_F(RecoveryTest, ShardsComplaintAfterAWorkersIsHeardToo) {
  const JobId job = train(job_config("a"));
  say(worker(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 is away"});
  say(ps(0), TaskFailed{job, Generation(1), ErrorCode::kUnavailable, "shard 0 lost shard 1"});
  pass(seconds(2));
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(RecoveryTest, FenceThatIsNotAnsweredFailsTheJob) {
  const JobId job = train(job_config("a"));
  answers_fence_ = false;
  kill(worker(0));
  pass(seconds(6));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, TimeThatTheJournalTakesIsNotCountedAgainstWhoIsToFence) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  kill(worker(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  answers_fence_ = false;
  release_disk();
  pass(seconds(4));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PsThatReturnsHasTheWholeTimeToFence) {
  const JobId job = train(job_config("a"));
  pass(seconds(30));
  answers_fence_ = false;
  silence(ps(0));
  pass(seconds(2));
  kill(worker(0));
  pass(seconds(8));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  hear_again(ps(0));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(4));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PacerThatDoesNotReportItsLastStepFailsTheJob) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  finish(job, worker(0));
  pass(seconds(9));
  EXPECT_FALSE(cluster_->has_ended(job)) << "a count that may be old isn't taken for the last";
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, PsThatComesAndGoesAtTheStartFailsTheJobInTheEnd) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  for (int i = 0; i < 119; ++i) {
    kill(ps(0));
    pass(seconds(1));
    restart(ps(0));
  }
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 120u);
  pass(seconds(2));
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

// ---- the chief was away

class ReclaimTest : public RecoveryTest {
 protected:
  // A new chief; `lost` never come back.
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
  // A worker that says hello is sent again what it holds.
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
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  restart(ps(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

TEST_F(ReclaimTest, PsThatWasRestartedMeanwhileMeansARollback) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0)});
  restart(ps(0));
  pass(milliseconds(100));  // another process is there: the one before is gone for sure
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_NE(event("rolled_back").find("how many isn't known"), std::string::npos) << event("rolled_back");
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
  folder_error_.reset();
  folder_work_.clear();
  pass(seconds(2));
  ASSERT_EQ(folder_work_.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<OpenFolder>(folder_work_.back().work));
}

TEST_F(ReclaimTest, FolderThatIsAwayIsWaitedForByAJobThatRolledBackAsTheChiefDied) {
  const JobId job = train(with_checkpoints());
  obedient_ = false;
  kill(ps(0));
  restart(ps(0));
  obedient_ = true;
  folder_error_ = Error{ErrorCode::kNoInput, "there is no /checkpoints"};
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
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
