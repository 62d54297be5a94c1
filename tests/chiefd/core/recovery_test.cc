// The job loses a ps and begins another generation.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(RecoveryTest, JobWaitsForALostPsAndBeginsAgainWithIt) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("ps/0"), std::string::npos) << status(job).reason;
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
  EXPECT_EQ(status(job).global_step, 30u) << "what it had reached";
  pacer_ = PacerReport();
  restart(ps(0));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().generation, Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "");
  EXPECT_EQ(sent<OpenJob>(worker(1)).back().generation, Generation(2));
  EXPECT_NE(event("rolled_back").find("30 steps are lost"), std::string::npos) << event("rolled_back");
  EXPECT_EQ(status(job).steps_lost, 30u);
}

TEST_F(RecoveryTest, JobIsAtItsRestoreUntilTheFirstStepAfterIt) {
  const JobId job = train(job_config("a"));
  EXPECT_EQ(status(job).part, JobPart::kInit);
  EXPECT_FALSE(status(job).progress_age);
  report_pacer(30, 0);
  EXPECT_EQ(status(job).part, JobPart::kTrain);
  EXPECT_EQ(status(job).progress_age, Duration::zero());
  kill(ps(0));
  EXPECT_EQ(status(job).part, JobPart::kRestore);
  pacer_ = PacerReport();
  restart(ps(0));
  EXPECT_EQ(status(job).part, JobPart::kRestore);
  report_pacer(1, 0);
  EXPECT_EQ(status(job).part, JobPart::kTrain);
}

TEST_F(RecoveryTest, EveryShardBeginsWithTheNewestCheckpointAlsoAtLivingPsTasks) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  report_pacer(30, 0);
  newest_ = restore_point(20);
  kill(ps(1));
  pacer_ = newest_->pacer;
  restart(ps(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (const std::uint32_t i : {0u, 1u})
    EXPECT_EQ(sent<CreateShards>(ps(i)).back().restore_path, "/checkpoints/a/step") << i;
  EXPECT_NE(event("rolled_back").find("10 steps are lost"), std::string::npos) << event("rolled_back");
  EXPECT_EQ(step_of_event("loss_counted"), 30u);
  EXPECT_EQ(step_of_event("rolled_back"), 20u);
  EXPECT_EQ(status(job).steps_lost, 10u);
  EXPECT_EQ(status(job).checkpoints.restore.counts().front(), 1u);
}

TEST_F(RecoveryTest, RollbackDoesNotTakeBackReportedExamples) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  const JobId job = train(config);
  pacer_.examples = 300;
  report_pacer(30, 0);
  EXPECT_EQ(status(job).examples_heard, 300u);
  newest_ = restore_point(20);
  newest_->pacer.examples = 200;
  const PacerReport saved = newest_->pacer;
  kill(ps(1));
  pass(milliseconds(300));  // until the rollback, the pacer still reports 300 examples
  EXPECT_EQ(status(job).examples_heard, 300u);
  pacer_ = saved;
  restart(ps(1));
  EXPECT_EQ(status(job).examples, 200u);
  EXPECT_EQ(status(job).examples_heard, 300u);
  pacer_.examples = 210;
  report_pacer(21, 0);
  EXPECT_EQ(status(job).examples_heard, 310u);
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

TEST_F(RecoveryTest, JobDoesNotWaitForAWorkerLostWithThePs) {
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

TEST_F(RecoveryTest, LossesBeforeTheWindowDoNotCountUnderAnyChief) {
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

TEST_F(RecoveryTest, WallClockThatIsSetBackMakesNoOldLossNew) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(31));
  wall_set_by_ = -seconds(600);
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
}

TEST_F(RecoveryTest, WallClockThatIsSetBackHidesNoNewLoss) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(30);
  const JobId job = train(config);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(15));
  wall_set_by_ = -seconds(600);
  restart_chief();
  for (const TaskId task : {ps(0), worker(0), worker(1)}) hello_again(task);
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
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

// A recovery waits if the job has made no progress since the previous one. A newer checkpoint counts as progress, even
// if the job hasn't reached its former step again.
TEST_F(RecoveryTest, RecoveryAfterANewerCheckpointDoesNotWait) {
  const JobId job = train(with_checkpoints());
  report_pacer(50, 0);
  step(chiefd::Save{ClientId(2), ""});
  report_pacer(100, 0);
  const auto lose = [this] {
    kill(ps(0));
    restart(ps(0));
  };
  lose();
  ASSERT_EQ(status(job).state, JobState::kRunning);
  report_pacer(50, 0);
  step(chiefd::Save{ClientId(2), ""});
  lose();
  EXPECT_EQ(status(job).state, JobState::kPaused) << "that checkpoint is of the same step";
  pass(milliseconds(300));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  report_pacer(60, 0);
  step(chiefd::Save{ClientId(2), ""});
  lose();
  EXPECT_EQ(status(job).state, JobState::kRunning);
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

TEST_F(RecoveryTest, NoCheckpointThatVerifiesFailsTheJobInsteadOfBeginningAnew) {
  const JobId job = train(with_checkpoints());
  newest_ = restore_point(20);
  kill(ps(0));
  obedient_ = false;
  restart(ps(0));
  newest_.reset();
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kData, "bucket 3 has another checksum"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("no checkpoint in /checkpoints/a can be used any more"), std::string::npos)
      << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().restore_path, "/checkpoints/a/step") << "nothing begins at step 0";
}

TEST_F(RecoveryTest, FirstParametersAreThoseThatTheChiefNamedForAllShardsAndGenerations) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  config.checkpoint.init_from = "/checkpoints/other";
  const JobId job = train(config);
  ASSERT_EQ(folder_work_.size(), 1u);
  EXPECT_EQ(std::get<FindInit>(folder_work_.back().work).path, "/checkpoints/other");
  for (const std::uint32_t i : {0u, 1u}) EXPECT_EQ(sent<CreateShards>(ps(i)).back().init_path, "/attempt") << i;
  EXPECT_NE(event("warm_start").find("/attempt"), std::string::npos) << event("warm_start");
  kill(ps(0));
  restart(ps(0));
  ASSERT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().init_path, "/attempt");
  EXPECT_EQ(folder_work_.size(), 1u);
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  hello_again(ps(1));
  restart(ps(0));
  pass(milliseconds(200));
  ASSERT_EQ(generation(job), Generation(3));
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().init_path, "/attempt");
  EXPECT_EQ(std::get<FindInit>(folder_work_.back().work).path, "/attempt") << "it is kept from being removed";
  // The new chief finds a generation in which no task has trained yet. It must name the same file with initial
  // parameters as the chief before it.
  obedient_ = false;
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  ASSERT_EQ(generation(job), Generation(4));
  obedient_ = true;
  restart_chief();
  hello_all();
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  for (std::size_t i = 1; i < folder_work_.size(); ++i)
    EXPECT_EQ(std::get<FindInit>(folder_work_[i].work).path, "/attempt");
}

TEST_F(RecoveryTest, FirstParametersThatCannotBeReadFailTheJob) {
  start_chief(2, 1);
  hello_all();
  JobConfig config = job_config("a");
  config.checkpoint.init_from = "/checkpoints/other";
  folder_error_ = Error{ErrorCode::kData, "/checkpoints/other/step: its manifest is damaged"};
  const JobId job = submit(config);
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kData);
  EXPECT_NE(status(job).reason.find("checkpoint.init_from: "), std::string::npos) << status(job).reason;
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

TEST_F(RecoveryTest, PsThatSeesAnotherFolderIsReportedAtOnceWhenTheJobIsNew) {
  start_chief(1, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(with_checkpoints());
  obedient_ = true;
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  say(ps(0), TaskFailed{job, Generation(1), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, EvaluationOfRolledBackStepsIsForgotten) {
  const JobId job = train(with_checkpoints());
  report_pacer(100, 0);
  newest_ = restore_point(20);
  const auto evaluate_at = [&](std::uint64_t step) {
    Evaluated evaluated;
    evaluated.job = job;
    evaluated.generation = generation(job);
    evaluated.step = Step(step);
    say(worker(0), evaluated);
  };
  evaluate_at(20);
  kill(ps(0));
  restart(ps(0));
  ASSERT_TRUE(status(job).evaluation) << "of the step that it goes on from";
  evaluate_at(50);
  kill(ps(0));
  restart(ps(0));
  pass(seconds(2));
  ASSERT_EQ(generation(job), Generation(3));
  EXPECT_FALSE(status(job).evaluation);
}

TEST_F(RecoveryTest, PsWhoseFolderIsAwayTriesAgainUnderANewChiefToo) {
  start_chief(1, 1);
  hello_all();
  obedient_ = false;
  const JobId job = submit(with_checkpoints());
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  ASSERT_EQ(generation(job), Generation(1)) << "begun, and not in training yet";
  restart_chief();
  hello(ps(0));
  hello(worker(0));
  pass(seconds(2));
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  ASSERT_EQ(generation(job), Generation(2));
  say(ps(0), TaskFailed{job, Generation(2), ErrorCode::kConfig, "/checkpoints/a isn't the folder that the chief sees"});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
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

// ---- how the chief learns of a loss

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

TEST_F(RecoveryTest, JobWaitsForASilentPsAsLongAsARollbackWouldCost) {
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
  pass(milliseconds(800));  // a dying ps may take a while, so the chief may see the lost connection late
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

// A bug of the ps may have lost the order to fence. A new process of the ps may carry the order out, so the job
// recovers; job.max_restarts bounds the retries.
TEST_F(RecoveryTest, PsThatDoesNotAnswerAFenceIsALossThatCounts) {
  const JobId job = train(job_config("a"));
  answers_fence_ = false;
  kill(worker(0));
  pass(milliseconds(5900));
  EXPECT_EQ(generation(job), Generation(1));
  pass(seconds(1));
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_NE(event("loss_counted").find("ps/0: it heartbeats, but didn't fence worker/0"), std::string::npos)
      << event("loss_counted");
}

TEST_F(RecoveryTest, PsThatNeverAnswersAFenceIsTheRootCauseInTheEnd) {
  const JobId job = train(without_restarts());
  answers_fence_ = false;
  kill(worker(0));
  pass(seconds(7));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

// The ps missed the order to fence, because its connection broke. While it isn't connected, the chief suspects its own
// host, so the ps doesn't count as silent.
TEST_F(RecoveryTest, PsWhoseConnectionIsAwayHasAllItsTimeToFenceOnceItIsBack) {
  const JobId job = train(without_restarts());
  answers_fence_ = false;
  kill(worker(0));
  pass(seconds(5));
  step(ConnectionLost{member(ps(0)), "reset"});
  pass(milliseconds(2000));
  hello_again(ps(0));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 2u);
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, TimeOfTheJournalIsNotCountedAgainstAPsThatFences) {
  const JobId job = train(without_restarts());
  disk_is_held_ = true;
  kill(worker(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  answers_fence_ = false;
  release_disk();
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, PsThatReturnsHasTheWholeTimeToFence) {
  const JobId job = train(without_restarts());
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
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kFailed);
}

TEST_F(RecoveryTest, ClientThatWantsACheckpointIsRefusedIfTheJobStaysPaused) {
  JobConfig config = with_checkpoints(Mode::kSync);
  config.job.shards = 2;
  train(config, 3);
  obedient_ = false;
  // No checkpoint begins before the pacer has confirmed the roster without worker/2.
  kill(worker(2));
  step(chiefd::Save{ClientId(2), ""});
  kill(ps(1));
  pass(seconds(15));
  EXPECT_FALSE(refused_);
  pass(seconds(10));
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
  EXPECT_NE(refused_->reason.find("no checkpoint could begin; the job is paused: "), std::string::npos)
      << refused_->reason;
}

TEST_F(RecoveryTest, PacerThatDoesNotReportItsLastStepIsALossThatCounts) {
  const JobId job = train(job_config("a"), 1);
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  finish(job, worker(0));
  pass(seconds(5));
  EXPECT_FALSE(cluster_->has_ended(job)) << "a count that may be old isn't taken for the last";
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(event("loss_counted").find("ps/0: it heartbeats, but didn't report its last step"), std::string::npos)
      << event("loss_counted");
}

TEST_F(RecoveryTest, PacerWhoseConnectionIsAwayHasAllItsTimeToReportOnceItIsBack) {
  const JobId job = train(without_restarts(), 1);
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  finish(job, worker(0));
  pass(seconds(5));
  step(ConnectionLost{member(ps(0)), "reset"});
  pass(seconds(2));
  hello_again(ps(0));
  pass(seconds(5));
  EXPECT_FALSE(is_final(status(job).state)) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause->task, ps(0));
}

TEST_F(RecoveryTest, PacerThatReturnsHasAllItsTimeToReport) {
  const JobId job = train(without_restarts(), 1);
  pass(seconds(30));
  lend_all(job);
  report_pacer(10, 1);
  obedient_ = false;
  silence(ps(0));
  finish(job, worker(0));
  pass(milliseconds(5800));
  ASSERT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  hear_again(ps(0));
  pass(seconds(5));
  EXPECT_FALSE(is_final(status(job).state)) << status(job).reason;
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kFailed);
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

}  // namespace
}  // namespace disttrain::chiefd
