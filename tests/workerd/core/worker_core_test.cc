#include "workerd/core/worker_core.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace disttrain::workerd {
namespace {

// One core, whose surroundings the test plays. Shard 0 has buckets 0 and 2, and shard 1 has bucket 1.
class WorkerCoreTest : public ::testing::Test {
 protected:
  WorkerCoreTest() {
    facts_.self = Member{TaskId{Role::kWorker, 0}, Incarnation(7)};
    facts_.roster = Roster{RosterVersion(1), {facts_.self}};
    facts_.layout.shards = 2;

    facts_.layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(1), 4, 0, 4}, Bucket{ShardId(0), 8, 4, 4}};
    facts_.shard_names = {"shard 0 (ps/0)", "shard 1 (ps/1)"};
    facts_.train_records = 100;
    facts_.config.train.batch_size = 10;
    facts_.config.train.epochs = 1;
    facts_.config.data.sharding = Sharding::kNone;
  }

  void begin() {
    core_ = std::make_unique<WorkerCore>(facts_, now_);
    give(ChannelOpened{ShardId(0), Sequence(0)});
    give(ChannelOpened{ShardId(1), Sequence(0)});
    EXPECT_EQ(take<ReportOpened>().size(), 1U);
    give(Start{});
  }
  // Runs the core until it begins its first computation.
  void begin_and_pull(Step version = Step(0)) {
    begin();
    for (const SendPull& pull : take<SendPull>()) answer_pull(pull, version);
    make_batches_ready();
    begin_work(version);
  }
  // In ssp, answers the pull with which a worker begins. Call this after the first batch is ready.
  void begin_work(Step version = Step(0)) {
    for (const SendPull& pull : take<SendPull>()) {
      EXPECT_TRUE(pull.pull.begins);
      answer_pull(pull, version);
    }
  }

  void give(const Event& event) { core_->step(now_, event, actions_); }
  void wait(Duration time) { now_ += time; }
  void wait_in_ticks(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      wait(std::chrono::seconds(1));
      give(Tick{});
    }
  }

  // Removes and returns the actions of one kind.
  template <typename T>
  std::vector<T> take() {
    std::vector<T> found;
    std::erase_if(actions_, [&found](const Action& action) {
      if (!std::holds_alternative<T>(action)) return false;
      found.push_back(std::get<T>(action));
      return true;
    });
    return found;
  }
  void make_batches_ready() {
    for (const RequestBatch& request : take<RequestBatch>()) give(BatchReady{request.order.ticket});
  }
  void answer_pull(const SendPull& pull, Step version) {
    for (std::uint32_t b = 0; b < 3; ++b) {
      if (facts_.layout.buckets[b].shard != pull.shard) continue;
      Parameters answer;
      answer.bucket = BucketId(b);
      answer.version = version;
      answer.pull_id = pull.pull.id;
      answer.roster = roster_;
      answer.last = b != 0;
      if (pull.pull.begins) answer.clock = std::max(pull.pull.clock, slowest_);
      give(ParametersArrived{pull.shard, answer});
    }
  }
  // The answer to a Want::kAll.
  void answer_push(ShardId shard, Sequence acknowledged, Step version, bool finished = false) {
    for (std::uint32_t b = 0; b < 3; ++b) {
      if (facts_.layout.buckets[b].shard != shard) continue;
      Parameters answer;
      answer.bucket = BucketId(b);
      answer.version = version;
      answer.outcome = PushOutcome::kApplied;
      answer.acknowledged = acknowledged;
      answer.roster = roster_;
      answer.last = b != 0;
      answer.finished = finished;
      give(ParametersArrived{shard, answer});
    }
  }

  JobFacts facts_;
  RosterVersion roster_{1};
  Step slowest_;  // ssp: of the other workers
  Instant now_{std::chrono::seconds(1)};
  std::unique_ptr<WorkerCore> core_;
  Actions actions_;
};

TEST_F(WorkerCoreTest, FirstParametersArePulledFromAllShardsBeforeAnythingIsComputed) {
  begin();
  const auto pulls = take<SendPull>();
  ASSERT_EQ(pulls.size(), 2U);
  make_batches_ready();
  answer_pull(pulls[0], Step(0));
  EXPECT_TRUE(take<Compute>().empty());
  answer_pull(pulls[1], Step(0));
  EXPECT_EQ(take<Compute>().size(), 1U);
}

TEST_F(WorkerCoreTest, PrefetchBatchesAreAskedForBesideTheOneInWork) {
  facts_.config.data.prefetch = 3;
  begin();
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  const auto first = take<RequestBatch>();
  EXPECT_EQ(first.size(), 3U);
  for (const RequestBatch& request : first) give(BatchReady{request.order.ticket});
  EXPECT_EQ(take<Compute>().size(), 1U);
  EXPECT_EQ(take<RequestBatch>().size(), 1U);
}

TEST_F(WorkerCoreTest, ReadyBucketsLeaveDuringTheComputationButTheLastOfEachShardWaitsForTheLoss) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(RangesReady{8});
  auto early = take<SendPush>();
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(early[0].push.bucket, BucketId(0));
  EXPECT_EQ(early[0].push.want, Want::kNothing);
  EXPECT_FALSE(early[0].push.last);
  give(RangesReady{12});
  EXPECT_TRUE(take<SendPush>().empty());
  give(Computed{0.5F});
  auto rest = take<SendPush>();
  ASSERT_EQ(rest.size(), 2U);
  for (const SendPush& send : rest) {
    EXPECT_TRUE(send.push.last);
    EXPECT_EQ(send.push.want, Want::kAll);
    EXPECT_EQ(send.push.examples, 10U);
    EXPECT_EQ(send.push.clock, Step(1));
  }
  EXPECT_EQ(rest[0].sequence, Sequence(2));
  EXPECT_EQ(rest[0].push.visited, (Positions{{0, 10}}));
  EXPECT_TRUE(rest[1].push.visited.empty());
}

TEST_F(WorkerCoreTest, AsynchronousPartsOfSeveralBucketsStreamBackBucketByBucket) {
  begin_and_pull();
  give(Computed{0.5F});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].push.want, Want::kBucket);
  EXPECT_EQ(sent[1].push.want, Want::kBucket);
  EXPECT_EQ(sent[2].push.want, Want::kAll) << "one bucket: its answer is everything";
}

TEST_F(WorkerCoreTest, CreditsHoldFramesBack) {
  facts_.credits = 1;
  begin_and_pull();
  give(Computed{0.5F});
  ASSERT_EQ(take<SendPush>().size(), 2U);
  Parameters answer;
  answer.version = Step(1);
  answer.acknowledged = Sequence(1);
  give(ParametersArrived{ShardId(0), answer});
  const auto next = take<SendPush>();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].sequence, Sequence(2));
}

TEST_F(WorkerCoreTest, NextComputationWaitsForTheWholeAnswer) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  take<Compute>();
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  EXPECT_TRUE(take<Compute>().empty());
  answer_push(ShardId(1), Sequence(1), Step(1));
  const auto next = take<Compute>();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].step, 2U);
  EXPECT_EQ(core_->progress().steps, 1U);
  EXPECT_EQ(core_->progress().examples, 10U);
}

TEST_F(WorkerCoreTest, SynchronousAnswersOfDifferentVersionsArePulledAgain) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  take<Compute>();
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(2));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_TRUE(take<Compute>().empty());
  const auto pulls = take<SendPull>();
  ASSERT_EQ(pulls.size(), 1U);
  EXPECT_EQ(pulls[0].shard, ShardId(1));
  answer_pull(pulls[0], Step(2));
  const auto next = take<Compute>();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].step, 3U);
}

TEST_F(WorkerCoreTest, NonfiniteLossSendsNoPayloadAndCountsAsSkipped) {
  begin_and_pull();
  give(RangesReady{4});
  EXPECT_EQ(take<SendPush>().size(), 1U);
  give(Computed{std::numeric_limits<float>::quiet_NaN()});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 2U);
  for (const SendPush& send : sent) {
    EXPECT_TRUE(send.push.skipped);
    EXPECT_TRUE(send.push.last);
    EXPECT_FALSE(send.payload);
    EXPECT_EQ(send.push.want, Want::kAll);
  }
}

TEST_F(WorkerCoreTest, ClippingByTheWorkerSendsNothingEarly) {
  facts_.config.train.clip = ClipConfig{ClipKind::kGlobalNorm, 5.0};
  begin_and_pull();
  const auto compute = take<Compute>();
  ASSERT_EQ(compute.size(), 1U);
  EXPECT_EQ(compute[0].clip_norm, 5.0);
  EXPECT_FALSE(compute[0].early);
  give(RangesReady{12});
  EXPECT_TRUE(take<SendPush>().empty());
}

TEST_F(WorkerCoreTest, PipelineComputesTheNextGradientWhileTheExchangeIsUnderWay) {
  facts_.config.train.pipeline = 1;
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  const auto first = take<Compute>();
  ASSERT_EQ(first.size(), 1U);
  give(Computed{0.5F});
  EXPECT_EQ(take<SendPush>().size(), 3U);
  make_batches_ready();
  const auto second = take<Compute>();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].step, 2U);
  EXPECT_EQ(second[0].parameters, first[0].parameters) << "the answer to the first push isn't here yet";
  EXPECT_NE(second[0].gradients, first[0].gradients);
  EXPECT_NE(core_->landing(), second[0].parameters);
  give(Computed{0.5F});
  EXPECT_TRUE(take<SendPush>().empty()) << "one exchange at a time";
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  const auto pushes = take<SendPush>();
  ASSERT_EQ(pushes.size(), 3U);
  EXPECT_EQ(pushes[0].push.clock, Step(2));
  EXPECT_EQ(pushes[0].push.pull_version, Step(0));
  make_batches_ready();
  const auto third = take<Compute>();
  ASSERT_EQ(third.size(), 1U);
  EXPECT_NE(third[0].parameters, first[0].parameters);
  EXPECT_NE(core_->landing(), third[0].parameters);
}

TEST_F(WorkerCoreTest, FinishedAnswerEndsTheWorkAtThePushBoundary) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  take<Compute>();
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1), true);
  EXPECT_TRUE(take<ReportFinished>().empty());
  answer_push(ShardId(1), Sequence(1), Step(1), true);
  const auto finished = take<ReportFinished>();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].steps, 1U);
  EXPECT_TRUE(take<Compute>().empty());
}

TEST_F(WorkerCoreTest, StopWaitsForTheAsynchronousAnswer) {
  facts_.layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(1), 4, 0, 4}, Bucket{ShardId(0), 8, 4, 4}};
  begin_and_pull();
  give(StopRequested{});
  give(Computed{0.5F});
  EXPECT_TRUE(take<ReportFinished>().empty());
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(take<ReportFinished>().size(), 1U);
}

TEST_F(WorkerCoreTest, StopDoesNotWaitForASynchronousStepThatOthersLeft) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  give(Computed{0.5F});
  give(StopRequested{});
  EXPECT_EQ(take<ReportFinished>().size(), 1U);
  // The worker runs the final evaluation even though its push isn't answered yet.
  take<SendPush>();
  give(EvaluateRequested{});
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  EXPECT_EQ(take<RunEvaluation>().size(), 1U);
}

TEST_F(WorkerCoreTest, FinalEvaluationPullsFirstAndReportsThePacersVersion) {
  begin_and_pull();
  give(StopRequested{});
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(take<ReportFinished>().size(), 1U);
  give(EvaluateRequested{});
  EXPECT_TRUE(take<RunEvaluation>().empty());
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(9));
  ASSERT_EQ(take<RunEvaluation>().size(), 1U);
  give(EvaluationDone{20.0, 40, {{"accuracy", 0.75}}});
  const auto report = take<ReportEvaluated>();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].evaluated.step, Step(9));
  EXPECT_TRUE(report[0].evaluated.final);
  EXPECT_DOUBLE_EQ(report[0].evaluated.loss, 0.5);
  EXPECT_EQ(report[0].evaluated.metrics, (std::vector<MetricValue>{{"accuracy", 0.75}}));
}

TEST_F(WorkerCoreTest, SynchronousEvaluationUsesTheParametersOfExactlyThatStep) {
  facts_.config.train.mode = Mode::kSync;
  facts_.config.evaluate.every_steps = 2;
  facts_.evaluates = true;
  begin_and_pull(Step(1));
  give(Computed{0.5F});
  take<SendPull>();
  take<Compute>();
  answer_push(ShardId(0), Sequence(2), Step(2));
  answer_push(ShardId(1), Sequence(1), Step(2));
  EXPECT_EQ(take<RunEvaluation>().size(), 1U);
  EXPECT_TRUE(take<SendPull>().empty());
  EXPECT_TRUE(take<Compute>().empty());
  give(EvaluationDone{1.0, 2, {{"accuracy", 0.5}}});
  const auto report = take<ReportEvaluated>();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_TRUE(report[0].evaluated.stalled_training);
  EXPECT_EQ(report[0].evaluated.step, Step(2));
  EXPECT_EQ(take<Compute>().size(), 1U);
}

TEST_F(WorkerCoreTest, AsynchronousEvaluationOfMidRunPullsFirst) {
  facts_.config.evaluate.every_steps = 100;
  facts_.evaluates = true;
  begin_and_pull(Step(150));
  EXPECT_TRUE(take<SendPull>().empty()) << "the multiple 100 was passed before it came";
  take<Compute>();
  give(Computed{0.5F});
  take<SendPush>();
  answer_push(ShardId(0), Sequence(2), Step(200));
  answer_push(ShardId(1), Sequence(1), Step(200));
  const auto pulls = take<SendPull>();
  ASSERT_EQ(pulls.size(), 2U);
  for (const SendPull& pull : pulls) answer_pull(pull, Step(201));
  EXPECT_EQ(take<RunEvaluation>().size(), 1U);
  give(EvaluationDone{1.0, 2, {{"accuracy", 0.5}}});
  EXPECT_EQ(take<ReportEvaluated>().at(0).evaluated.step, Step(201));
  EXPECT_EQ(take<Compute>().size(), 1U);
}

TEST_F(WorkerCoreTest, LeaseOfAnotherRosterIsVoidAndItsBatchesAreDropped) {
  facts_.config.train.mode = Mode::kSync;
  facts_.config.data.sharding = Sharding::kLease;
  begin();
  EXPECT_EQ(take<RequestLease>().size(), 1U);
  Lease lease;
  lease.id = LeaseId(1);
  lease.positions = {{0, 80}};
  lease.first_step = Step(1);
  lease.steps = 4;
  lease.ranks = 2;
  lease.roster = RosterVersion(1);
  give(LeaseGranted{LeaseGrant{JobId(1), Generation(1), lease, false, lease.roster}});
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  const auto planned = take<RequestBatch>();
  ASSERT_EQ(planned.size(), 2U);
  EXPECT_EQ(planned[1].order.positions, (Positions{{20, 30}}));
  for (const RequestBatch& request : planned) give(BatchReady{request.order.ticket});
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(Computed{0.5F});
  roster_ = RosterVersion(2);
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(take<DropBatch>().size(), 2U);
  EXPECT_TRUE(take<Compute>().empty());
  EXPECT_EQ(take<RequestLease>().size(), 2U) << "one as the block ran dry, one for the new roster";
  lease.id = LeaseId(2);
  lease.positions = {{20, 80}};
  lease.first_step = Step(2);
  lease.steps = 6;
  lease.ranks = 1;
  lease.roster = RosterVersion(2);
  give(LeaseGranted{LeaseGrant{JobId(1), Generation(1), lease, true, lease.roster}});
  make_batches_ready();
  const auto next = take<Compute>();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].step, 2U);
}

TEST_F(WorkerCoreTest, LostChannelIsAccusedAndWhatTheShardLacksIsSentAgain) {
  begin_and_pull();
  give(Computed{0.5F});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 3U);
  give(ChannelLost{ShardId(0), "reset"});
  EXPECT_EQ(take<Accuse>().size(), 1U);
  give(ChannelOpened{ShardId(0), Sequence(1)});
  const auto again = take<SendPush>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].sequence, Sequence(2));
  EXPECT_EQ(again[0].push.want, Want::kAll) << "the answer to frame 1 may be lost too";
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(core_->progress().steps, 1U);
}

TEST_F(WorkerCoreTest, LostAnswerIsAskedForByTheLastFrameOnceMore) {
  begin_and_pull();
  give(Computed{0.5F});
  take<SendPush>();
  give(ChannelLost{ShardId(1), "reset"});
  give(ChannelOpened{ShardId(1), Sequence(1)});
  const auto again = take<SendPush>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].sequence, Sequence(1));
}

TEST_F(WorkerCoreTest, ShardThatClaimsFramesNeverSentFailsTheJob) {
  begin_and_pull();
  give(ChannelLost{ShardId(1), "reset"});
  give(ChannelOpened{ShardId(1), Sequence(99)});
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(failed[0].error.message.find("took is 99"), std::string::npos);
}

TEST_F(WorkerCoreTest, UnaskedParametersFailTheJob) {
  begin_and_pull();
  Parameters stray;
  give(ParametersArrived{ShardId(1), stray});
  EXPECT_EQ(take<Fail>().size(), 1U);
}

TEST_F(WorkerCoreTest, PsThatIsNotReachedIsAccusedAgainAndAgainUntilItIs) {
  begin_and_pull();
  give(ChannelLost{ShardId(1), "no answer", std::chrono::seconds(1)});
  give(PsUnreachable{ShardId(1), "no answer in time", std::chrono::seconds(3)});
  auto accused = take<Accuse>();
  ASSERT_EQ(accused.size(), 2U);
  EXPECT_EQ(accused[0].lasts, std::chrono::seconds(1));
  EXPECT_EQ(accused[1].lasts, std::chrono::seconds(3));
  EXPECT_FALSE(accused[1].withdrawn);
  give(PsReached{ShardId(1)});
  accused = take<Accuse>();
  ASSERT_EQ(accused.size(), 1U);
  EXPECT_EQ(accused[0].shard, ShardId(1));
  EXPECT_TRUE(accused[0].withdrawn);
}

// When workers wait for each other, the chief decides which of them failed. So the worker gives up only after the chief
// has had time to decide.
TEST_F(WorkerCoreTest, WaitForOthersEndsOnlyAfterTheChiefHasJudgedIt) {
  facts_.config.train.mode = Mode::kSync;
  begin_and_pull();
  give(Computed{0.5F});
  wait_in_ticks(600);
  EXPECT_TRUE(take<Fail>().empty()) << "another worker may evaluate";
  wait_in_ticks(61);
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].error.code, ErrorCode::kUnavailable) << "the job may do without this worker";
}

TEST_F(WorkerCoreTest, BatchThatDoesNotComeIsThisWorkersOwnFault) {
  begin();
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  ASSERT_FALSE(take<RequestBatch>().empty());
  wait_in_ticks(61);
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].error.code, ErrorCode::kFailed);
  EXPECT_NE(failed[0].error.message.find("the next batch"), std::string::npos) << failed[0].error.message;
}

TEST_F(WorkerCoreTest, StalledWaitNamesTheShardThatDoesNotAnswer) {
  begin_and_pull();
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  wait_in_ticks(121);
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(failed[0].error.message.find("shard 1 (ps/1)"), std::string::npos) << failed[0].error.message;
  EXPECT_EQ(failed[0].error.message.find("shard 0"), std::string::npos) << failed[0].error.message;
  EXPECT_NE(failed[0].error.message.find("120 s"), std::string::npos) << failed[0].error.message;
}

// The worker's clock jumped, or the worker was stopped. No peer made the worker wait, so it doesn't fail.
TEST_F(WorkerCoreTest, TimeThatTheWorkerSleptIsNobodysStall) {
  facts_.config.data.sharding = Sharding::kLease;
  begin_and_pull();
  wait_in_ticks(2);
  wait(std::chrono::seconds(121));
  give(Tick{});
  EXPECT_TRUE(take<Fail>().empty());
  wait_in_ticks(121);
  EXPECT_EQ(take<Fail>().size(), 1U);
}

TEST_F(WorkerCoreTest, StalledInputNamesTheLease) {
  facts_.config.data.sharding = Sharding::kLease;
  begin_and_pull();
  wait_in_ticks(121);
  EXPECT_NE(take<Fail>().at(0).error.message.find("lease"), std::string::npos);
}

// Only a chief can grant a lease, or say that a ps is gone. So without a chief, the worker waits without a limit.
TEST_F(WorkerCoreTest, WithoutAChiefNoTimeRunsOut) {
  facts_.config.data.sharding = Sharding::kLease;
  begin_and_pull();
  wait_in_ticks(50);
  give(ChiefAway{});
  wait_in_ticks(1000);
  EXPECT_TRUE(take<Fail>().empty());
  give(ChiefReturned{});
  wait_in_ticks(119);
  EXPECT_TRUE(take<Fail>().empty()) << "the wait starts anew with the new chief";
  wait_in_ticks(2);
  EXPECT_EQ(take<Fail>().size(), 1U);
}

TEST_F(WorkerCoreTest, ChiefThatComesAgainWithoutHavingBeenAwayGivesNoTime) {
  facts_.config.data.sharding = Sharding::kLease;
  begin_and_pull();
  wait_in_ticks(50);
  give(ChiefReturned{});
  wait_in_ticks(71);
  EXPECT_EQ(take<Fail>().size(), 1U);
}

TEST_F(WorkerCoreTest, LeaseIsAskedForSecondsBeforeItIsNeeded) {
  facts_.config.data.sharding = Sharding::kLease;
  const auto grant = [this](std::uint64_t id, std::uint64_t records) {
    LeaseGrant message;
    message.lease = Lease{};
    message.lease->id = LeaseId(id);
    message.lease->positions = {Interval{0, records}};
    give(LeaseGranted{message});
    make_batches_ready();
  };
  begin_and_pull();
  EXPECT_EQ(take<RequestLease>().size(), 1U);
  grant(1, 1000);
  EXPECT_TRUE(take<RequestLease>().empty()) << "the rate isn't known: half of it is enough";
  wait(std::chrono::milliseconds(10));
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  const auto asked = take<RequestLease>();
  ASSERT_EQ(asked.size(), 1U) << "the rest is less than two seconds' worth";
  grant(2, static_cast<std::uint64_t>(asked[0].records_per_second * 2));
  EXPECT_TRUE(take<RequestLease>().empty());
}

TEST_F(WorkerCoreTest, LastPushOfSspSaysSo) {
  facts_.config.train.mode = Mode::kSsp;
  facts_.train_records = 10;
  begin_and_pull();
  give(Computed{0.5F});
  for (const SendPush& send : take<SendPush>()) EXPECT_EQ(send.push.final, send.push.last);
  give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(2), PushOutcome::kApplied, false}});
  EXPECT_TRUE(take<ReportFinished>().empty());
  give(AcknowledgeArrived{ShardId(1), Acknowledge{Sequence(1), PushOutcome::kApplied, false}});
  EXPECT_EQ(take<ReportFinished>().at(0).steps, 1U);
}

TEST_F(WorkerCoreTest, SspWorkerThatIsStoppedSaysFarewellFirst) {
  facts_.config.train.mode = Mode::kSsp;
  begin_and_pull();
  give(Computed{0.5F});
  take<SendPush>();
  answer_push(ShardId(0), Sequence(2), Step(1));
  give(StopRequested{});
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_TRUE(take<ReportFinished>().empty());
  const auto farewell = take<SendPush>();
  ASSERT_EQ(farewell.size(), 2U);
  for (const SendPush& send : farewell) {
    EXPECT_TRUE(send.push.final && send.push.last);
    EXPECT_FALSE(send.payload);
    EXPECT_EQ(send.push.clock, Step(2));
  }
  give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(3), PushOutcome::kApplied, false}});
  give(AcknowledgeArrived{ShardId(1), Acknowledge{Sequence(2), PushOutcome::kApplied, false}});
  EXPECT_EQ(take<ReportFinished>().at(0).steps, 1U) << "the farewell is no step";
}

TEST_F(WorkerCoreTest, SspWorkerThatWaitsForALeaseHoldsNobodyBackAndComesBack) {
  facts_.config.train.mode = Mode::kSsp;
  facts_.config.data.sharding = Sharding::kLease;
  const auto grant = [this](std::uint64_t id, Interval positions, bool last) {
    LeaseGrant message;
    message.lease = Lease{};
    message.lease->id = LeaseId(id);
    message.lease->positions = {positions};
    message.last = last;
    give(LeaseGranted{message});
    make_batches_ready();
  };
  const auto acknowledge = [this](std::uint64_t first, std::uint64_t second) {
    give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(first), PushOutcome::kApplied, false}});
    give(AcknowledgeArrived{ShardId(1), Acknowledge{Sequence(second), PushOutcome::kApplied, false}});
  };
  begin_and_pull();
  EXPECT_TRUE(take<SendPush>().empty()) << "the worker hasn't begun, so no other worker waits for it";
  EXPECT_EQ(core_->progress().phase, Phase::kInput);

  slowest_ = Step(7);
  grant(1, Interval{0, 10}, false);
  EXPECT_TRUE(take<Compute>().empty()) << "on parameters that are too old";
  begin_work();
  EXPECT_EQ(take<Compute>().size(), 1U);
  give(Computed{0.5F});
  const auto pushes = take<SendPush>();
  ASSERT_EQ(pushes.size(), 3U);
  for (const SendPush& send : pushes) {
    EXPECT_FALSE(send.push.final);
    EXPECT_EQ(send.push.clock, Step(8)) << "it goes on from the slowest of the others";
  }
  answer_push(ShardId(0), Sequence(2), Step(1));
  EXPECT_TRUE(take<SendPush>().empty());
  answer_push(ShardId(1), Sequence(1), Step(1));
  const auto farewell = take<SendPush>();
  ASSERT_EQ(farewell.size(), 2U);
  for (const SendPush& send : farewell) {
    EXPECT_TRUE(send.push.final && send.push.last && !send.payload);
    EXPECT_EQ(send.push.clock, Step(9));
  }
  acknowledge(3, 2);
  EXPECT_TRUE(take<SendPush>().empty()) << "the farewell is sent once";

  grant(2, Interval{10, 20}, true);
  begin_work(Step(1));
  give(Computed{0.5F});
  for (const SendPush& send : take<SendPush>()) EXPECT_EQ(send.push.final, send.push.last);
  acknowledge(5, 3);
  EXPECT_EQ(take<ReportFinished>().at(0).steps, 2U) << "farewells are no steps";
}

TEST_F(WorkerCoreTest, PhaseTimesAddUp) {
  begin();
  wait(std::chrono::milliseconds(3));
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  wait(std::chrono::milliseconds(2));
  make_batches_ready();
  wait(std::chrono::milliseconds(7));
  give(Computed{0.5F});
  wait(std::chrono::milliseconds(1));
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  const auto& times = core_->progress().times;
  const auto of = [&times](Phase phase) { return times[static_cast<std::size_t>(phase)]; };
  EXPECT_EQ(of(Phase::kPull), std::chrono::milliseconds(3));
  EXPECT_EQ(of(Phase::kInput), std::chrono::milliseconds(2));
  EXPECT_EQ(of(Phase::kCompute), std::chrono::milliseconds(7));
  EXPECT_EQ(of(Phase::kWait), std::chrono::milliseconds(1));
}

// If the worker has sent some frames of a push, it must send the others: the checkpoint waits for the mark, and the
// mark must not come in the middle of a push.
TEST_F(WorkerCoreTest, PushThatHasBegunIsEndedInAPauseWhereAMarkWaitsForIt) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(RangesReady{4});
  take<SendPush>();
  give(Paused{true});
  give(MarkRequested{5});
  EXPECT_TRUE(take<SendMark>().empty());
  give(Computed{1.0F});
  EXPECT_EQ(take<SendPush>().size(), 2U);
  EXPECT_EQ(take<SendMark>().size(), 2U);
  EXPECT_TRUE(take<Compute>().empty());
}

// The chief repeats the order when the worker reconnects. The worker must not send a second mark for the same attempt:
// behind the first mark, the worker holds pushes back until the cut, and a second mark would release them too early.
TEST_F(WorkerCoreTest, MarkThatIsAskedForAgainIsSentOnce) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  give(MarkRequested{5});
  give(Computed{1.0F});
  EXPECT_EQ(take<SendMark>().size(), 2U);
  const std::size_t sent = take<SendPush>().size();
  EXPECT_EQ(sent, 3U);
  give(MarkRequested{5});
  EXPECT_TRUE(take<SendMark>().empty());
  EXPECT_TRUE(take<SendPush>().empty());
  give(MarkRequested{4});
  EXPECT_TRUE(take<SendMark>().empty()) << "an earlier attempt";
  give(MarkRequested{6});
  EXPECT_EQ(take<SendMark>().size(), 2U) << "the next attempt";
}

// The shards ask for first values while the first pull waits.
TEST_F(WorkerCoreTest, FirstValuesAreLoadedOnceAndSentToEveryShardThatAsks) {
  begin();
  const auto pulls = take<SendPull>();
  Acknowledge asks;
  asks.wants_values = true;
  give(AcknowledgeArrived{ShardId(0), asks});
  give(AcknowledgeArrived{ShardId(1), asks});
  EXPECT_EQ(take<LoadValues>().size(), 1U);
  EXPECT_TRUE(take<SendPush>().empty());
  give(ValuesLoaded{});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 3U);
  for (const SendPush& send : sent) {
    EXPECT_TRUE(send.push.initial);
    EXPECT_TRUE(send.payload);
    EXPECT_EQ(send.push.last, send.push.bucket != BucketId(0));
  }
  give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(2)}});
  give(AcknowledgeArrived{ShardId(1), Acknowledge{Sequence(1)}});
  for (const SendPull& pull : pulls) answer_pull(pull, Step(0));
  make_batches_ready();
  EXPECT_EQ(take<Compute>().size(), 1U);
  give(Computed{0.5F});
  EXPECT_EQ(take<SendPush>().front().sequence, Sequence(3)) << "the values took frames 1 and 2";
}

TEST_F(WorkerCoreTest, FirstValuesThatAChannelLostAreSentAgain) {
  begin();
  Acknowledge asks;
  asks.wants_values = true;
  give(AcknowledgeArrived{ShardId(0), asks});
  give(ValuesLoaded{});
  EXPECT_EQ(take<SendPush>().size(), 2U);
  give(ChannelLost{ShardId(0), "cut"});
  give(ChannelOpened{ShardId(0), Sequence(1)});
  auto again = take<SendPush>();
  ASSERT_EQ(again.size(), 1U) << "the shard has taken the first frame";
  EXPECT_EQ(again[0].sequence, Sequence(2));
  give(AcknowledgeArrived{ShardId(0), asks});
  EXPECT_TRUE(take<SendPush>().empty()) << "they are on their way";
}

TEST_F(WorkerCoreTest, FirstValuesInTheMiddleOfTheTrainingAreAnError) {
  begin_and_pull();
  Acknowledge asks;
  asks.wants_values = true;
  give(AcknowledgeArrived{ShardId(0), asks});
  ASSERT_EQ(take<Fail>().size(), 1U);
}

// While the engine computes, the answers to its first frames may arrive.
TEST_F(WorkerCoreTest, CreditsComeBackDuringAComputation) {
  facts_.config.train.mode = Mode::kAsync;
  facts_.credits = 1;
  begin_and_pull();
  give(RangesReady{4});
  ASSERT_EQ(take<SendPush>().size(), 1U);
  EXPECT_TRUE(core_->awaits_answers());
  Parameters answer;
  answer.bucket = BucketId(0);
  answer.version = Step(1);
  answer.acknowledged = Sequence(1);
  answer.roster = roster_;
  give(ParametersArrived{ShardId(0), answer});
  give(Computed{0.5F});
  const auto rest = take<SendPush>();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_TRUE(rest[0].push.last || rest[1].push.last);
}

TEST_F(WorkerCoreTest, GradientThatIsComputedInAPauseWaitsForItsEnd) {
  facts_.config.train.mode = Mode::kAsync;
  begin_and_pull();
  ASSERT_EQ(take<Compute>().size(), 1U);
  give(Paused{true});
  give(Computed{1.0F});
  EXPECT_TRUE(take<SendPush>().empty());
  give(Paused{false});
  EXPECT_EQ(take<SendPush>().size(), 3U);
}

}  // namespace
}  // namespace disttrain::workerd
