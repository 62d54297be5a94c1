// Steps that begin before all of their parameters are there (JobFacts::begins_early).
#include <gmock/gmock.h>

#include <limits>

#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

using testing::UnorderedElementsAre;

class EarlyStepTest : public WorkerCoreTest {
 protected:
  EarlyStepTest() {
    facts_.begins_early = true;
    facts_.credits = 4;
  }

  // Computes the first step and pushes it. The second step has begun.
  Compute push_first_step() {
    begin_and_pull();
    take<Compute>();
    give(Computed{0.5F});
    make_batches_ready();
    const auto compute = take<Compute>();
    EXPECT_EQ(compute.size(), 1U);
    return compute.at(0);
  }
  void answer(ShardId shard, Sequence sequence, BucketId bucket) {
    Parameters parameters;
    parameters.bucket = bucket;
    parameters.acknowledged = sequence;
    parameters.version = Step(1);
    give(ParametersArrived{shard, parameters});
  }
};

TEST_F(EarlyStepTest, NextStepBeginsWhenThePushBegins) {
  const Compute compute = push_first_step();
  EXPECT_THAT(compute.awaited, UnorderedElementsAre(BucketId(0), BucketId(1), BucketId(2)));
  EXPECT_EQ(core_->progress().steps, 0U);
}

TEST_F(EarlyStepTest, GradientsWaitUntilThePushBeforeIsComplete) {
  push_first_step();
  EXPECT_EQ(take<SendPush>().size(), 3U);
  give(RangesReady{8});
  EXPECT_TRUE(take<SendPush>().empty());
  answer(ShardId(0), Sequence(1), BucketId(0));
  answer(ShardId(0), Sequence(2), BucketId(2));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(core_->progress().steps, 1U);
  give(RangesReady{8});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].push.pull_version, Step(1)) << "the engine used the answers";
}

TEST_F(EarlyStepTest, ItBeginsAgainIfAChannelMustSendItsParametersAgain) {
  push_first_step();
  take<SendPush>();
  answer_push(ShardId(1), Sequence(1), Step(1));
  give(ChannelLost{ShardId(1), "reset"});
  EXPECT_TRUE(take<Recompute>().empty()) << "its answer is there";
  answer(ShardId(0), Sequence(1), BucketId(0));
  give(ChannelLost{ShardId(0), "reset"});
  const auto again = take<Recompute>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].shard, ShardId(0));
}

TEST_F(EarlyStepTest, ItDoesNotBeginWhileAChannelIsLost) {
  begin_and_pull();
  take<Compute>();
  give(RangesReady{4});
  give(ChannelLost{ShardId(0), "reset"});
  give(Computed{0.5F});
  make_batches_ready();
  EXPECT_TRUE(take<Compute>().empty());
  give(ChannelOpened{ShardId(0), Sequence(1)});
  make_batches_ready();
  const auto compute = take<Compute>();
  ASSERT_EQ(compute.size(), 1U);
  EXPECT_THAT(compute[0].awaited, UnorderedElementsAre(BucketId(0), BucketId(1), BucketId(2)))
      << "the shard sends bucket 0 again";
}

TEST_F(EarlyStepTest, ItIsDroppedIfTheJobHasDoneItsLastStep) {
  push_first_step();
  Acknowledge last;
  last.acknowledged = Sequence(2);
  last.outcome = PushOutcome::kFinished;
  give(AcknowledgeArrived{ShardId(0), last});
  EXPECT_EQ(take<DropCompute>().size(), 1U);
}

TEST_F(EarlyStepTest, ItIsDroppedIfTheLastAnswerSaysThatTheJobHasDoneItsLastStep) {
  push_first_step();
  take<SendPush>();
  answer(ShardId(0), Sequence(1), BucketId(0));
  answer(ShardId(0), Sequence(2), BucketId(2));
  answer_push(ShardId(1), Sequence(1), Step(1), true);
  EXPECT_EQ(take<DropCompute>().size(), 1U);
  EXPECT_EQ(take<ReportFinished>().size(), 1U);
  give(RangesReady{12});
  EXPECT_TRUE(take<SendPush>().empty());
}

// The engine would wait for bucket 2 for ever.
TEST_F(EarlyStepTest, ABucketInThePlaceOfAnotherFailsTheJob) {
  push_first_step();
  answer(ShardId(0), Sequence(1), BucketId(0));
  answer(ShardId(0), Sequence(2), BucketId(0));
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(failed[0].error.message.find("bucket 0 twice"), std::string::npos) << failed[0].error.message;
}

TEST_F(EarlyStepTest, AnAnswerThatLeavesABucketOutFailsTheJob) {
  push_first_step();
  give(ChannelLost{ShardId(0), "reset"});
  give(ChannelOpened{ShardId(0), Sequence(2)});
  Parameters only;
  only.bucket = BucketId(2);
  only.acknowledged = Sequence(2);
  only.last = true;
  give(ParametersArrived{ShardId(0), only});
  EXPECT_EQ(take<Fail>().size(), 1U);
}

TEST_F(EarlyStepTest, NoStepBeginsInAPause) {
  begin_and_pull();
  take<Compute>();
  give(RangesReady{4});
  give(Paused{true});
  give(Computed{0.5F});
  make_batches_ready();
  EXPECT_TRUE(take<Compute>().empty());
}

TEST_F(EarlyStepTest, MarksComeBetweenTwoPushes) {
  push_first_step();
  give(MarkRequested{1});
  EXPECT_EQ(take<SendMark>().size(), 2U);
}

// A step is skipped because its loss isn't finite, so its last frame asks for all buckets. The frames before it wait
// for the release of a mark. If they asked for their buckets too, these would come twice. The second answer would
// change parameters that the next computation, which has begun, reads.
TEST_F(EarlyStepTest, FramesThatWaitDoNotAskForWhatTheLastFrameAsksFor) {
  push_first_step();
  give(MarkRequested{1});
  answer(ShardId(0), Sequence(1), BucketId(0));
  answer(ShardId(0), Sequence(2), BucketId(2));
  answer_push(ShardId(1), Sequence(1), Step(1));
  give(RangesReady{8});
  take<SendPush>();
  give(Computed{std::numeric_limits<float>::quiet_NaN()});
  make_batches_ready();
  const auto compute = take<Compute>();
  ASSERT_EQ(compute.size(), 1U);
  EXPECT_THAT(compute[0].awaited, UnorderedElementsAre(BucketId(0), BucketId(1), BucketId(2)));
  EXPECT_TRUE(take<SendPush>().empty()) << "the mark isn't released";
  give(MarkTakenArrived{ShardId(0), MarkTaken{1}});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].push.want, Want::kNothing);
  EXPECT_EQ(sent[1].push.want, Want::kAll);
  EXPECT_TRUE(sent[1].push.skipped);
}

TEST_F(EarlyStepTest, WaitingForParametersCountsAsWaiting) {
  push_first_step();
  const auto times = core_->progress().times;
  EXPECT_EQ(core_->progress().phase, Phase::kWait) << "so that the ps is blamed if it doesn't answer";
  answer(ShardId(0), Sequence(1), BucketId(0));
  wait(std::chrono::seconds(3));
  answer(ShardId(0), Sequence(2), BucketId(2));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(core_->progress().phase, Phase::kCompute);
  wait(std::chrono::seconds(2));
  give(Computed{0.5F, std::chrono::seconds(2)});
  const auto later = core_->progress().times;
  const auto spent = [&](Phase phase) {
    return later[static_cast<std::size_t>(phase)] - times[static_cast<std::size_t>(phase)];
  };
  EXPECT_EQ(spent(Phase::kWait), std::chrono::seconds(2));
  EXPECT_EQ(spent(Phase::kCompute), std::chrono::seconds(3));
}

TEST_F(EarlyStepTest, AStepThatWaitsTooLongFailsTheJob) {
  push_first_step();
  wait_in_ticks(2 * 60 * 60);
  EXPECT_EQ(take<Fail>().size(), 1U);
}

// The flat array begins with the last layer. The next step needs the first layer first, and of a layer its first words.
TEST_F(EarlyStepTest, BucketsOfTheFirstLayerAreSentFirst) {
  facts_.layout.shards = 1;
  facts_.layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(0), 4, 4, 4}, Bucket{ShardId(0), 8, 8, 4},
                           Bucket{ShardId(0), 12, 12, 4}, Bucket{ShardId(0), 16, 16, 4}};
  facts_.layout.variable_begins = {10, 1, 0};
  facts_.shard_names.pop_back();
  facts_.credits = 1;
  core_ = std::make_unique<WorkerCore>(facts_, now_);
  give(ChannelOpened{ShardId(0), Sequence(0)});
  give(Start{});
  Parameters pulled;
  pulled.pull_id = take<SendPull>().at(0).pull.id;
  pulled.last = true;
  give(ParametersArrived{ShardId(0), pulled});
  make_batches_ready();
  give(Computed{0.5F});
  std::vector<BucketId> order;
  bool last = false;
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    const auto sent = take<SendPush>();
    ASSERT_EQ(sent.size(), 1U);
    order.push_back(sent[0].push.bucket);
    EXPECT_FALSE(last);
    last = sent[0].push.last;
    answer(ShardId(0), Sequence(sequence), order.back());
  }
  EXPECT_TRUE(last);
  // Bucket 0 is sent as soon as it is ready. Bucket 2 has words of two variables.
  EXPECT_THAT(order, testing::ElementsAre(BucketId(0), BucketId(2), BucketId(3), BucketId(4), BucketId(1)));
}

}  // namespace
}  // namespace disttrain::workerd
