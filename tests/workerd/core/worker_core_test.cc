// The steps of a worker: what it pulls, computes and pushes, and when.
#include <limits>

#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

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

TEST_F(WorkerCoreTest, AccumulationTakesTheRecordsOfSeveralBatchesInAStep) {
  facts_.config.train.accumulate = 3;
  begin();
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(0));
  const auto requests = take<RequestBatch>();
  ASSERT_GE(requests.size(), 2U);
  EXPECT_EQ(requests[0].order.examples, 30U);
  EXPECT_EQ(requests[1].order.positions.front().begin, 30U);
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

}  // namespace
}  // namespace disttrain::workerd
