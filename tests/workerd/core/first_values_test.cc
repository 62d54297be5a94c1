// The values with which a model begins, if the worker has them.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

class FirstValuesOfAWorker : public WorkerCoreTest {
 protected:
  void ask_for_values(ShardId shard) {
    Acknowledge asks;
    asks.wants_values = true;
    give(AcknowledgeArrived{shard, asks});
  }
};

// The shards ask for first values while the first pull waits.
TEST_F(FirstValuesOfAWorker, FirstValuesAreLoadedOnceAndSentToEveryShardThatAsks) {
  begin();
  const auto pulls = take<SendPull>();
  ask_for_values(ShardId(0));
  ask_for_values(ShardId(1));
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

TEST_F(FirstValuesOfAWorker, FirstValuesThatAChannelLostAreSentAgain) {
  begin();
  ask_for_values(ShardId(0));
  give(ValuesLoaded{});
  EXPECT_EQ(take<SendPush>().size(), 2U);
  give(ChannelLost{ShardId(0), "cut"});
  give(ChannelOpened{ShardId(0), Sequence(1)});
  auto again = take<SendPush>();
  ASSERT_EQ(again.size(), 1U) << "the shard has taken the first frame";
  EXPECT_EQ(again[0].sequence, Sequence(2));
  ask_for_values(ShardId(0));
  EXPECT_TRUE(take<SendPush>().empty()) << "they are on their way";
}

// A worker with a lower rank has joined, and the shards have taken its values. So they answer the pull, although frames
// of this worker are still on their way.
TEST_F(FirstValuesOfAWorker, FirstStepWaitsUntilItsOwnValuesAreTaken) {
  for (const ClipKind clip : {ClipKind::kNone, ClipKind::kGlobalNorm}) {
    facts_.config.train.clip = {clip, 1.0};
    actions_.clear();
    begin();
    const auto pulls = take<SendPull>();
    ask_for_values(ShardId(0));
    give(ValuesLoaded{});
    EXPECT_EQ(take<SendPush>().size(), 2U);
    for (const SendPull& pull : pulls) answer_pull(pull, Step(0));
    make_batches_ready();
    EXPECT_TRUE(take<Compute>().empty());
    EXPECT_EQ(core_->progress().phase, Phase::kWait);
    give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(2)}});
    EXPECT_EQ(take<Compute>().size(), 1U);
    give(Computed{0.5F});
    EXPECT_EQ(take<SendPush>().front().sequence, Sequence(3));
  }
}

TEST_F(FirstValuesOfAWorker, MarkOfACheckpointFollowsItsOwnValues) {
  begin();
  const auto pulls = take<SendPull>();
  ask_for_values(ShardId(0));
  give(ValuesLoaded{});
  EXPECT_EQ(take<SendPush>().size(), 2U);
  for (const SendPull& pull : pulls) answer_pull(pull, Step(0));
  make_batches_ready();
  give(MarkRequested{1});
  EXPECT_EQ(take<SendMark>().size(), 2U) << "the frames before it are sent";
  give(AcknowledgeArrived{ShardId(0), Acknowledge{Sequence(2)}});
  EXPECT_EQ(take<Compute>().size(), 1U);
}

TEST_F(FirstValuesOfAWorker, StallOfItsOwnValuesNamesTheShard) {
  begin();
  const auto pulls = take<SendPull>();
  ask_for_values(ShardId(0));
  give(ValuesLoaded{});
  for (const SendPull& pull : pulls) answer_pull(pull, Step(0));
  make_batches_ready();
  wait_in_ticks(200);
  const auto failed = take<Fail>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(failed[0].error.message.find("shard 0 (ps/0)"), std::string::npos) << failed[0].error.message;
}

TEST_F(FirstValuesOfAWorker, FirstValuesThatAreLoadedTooLateAreNotSent) {
  begin();
  const auto pulls = take<SendPull>();
  ask_for_values(ShardId(0));
  for (const SendPull& pull : pulls) answer_pull(pull, Step(0));
  make_batches_ready();
  EXPECT_TRUE(take<Compute>().empty()) << "they are being written to the gradient buffer";
  give(ValuesLoaded{});
  EXPECT_TRUE(take<SendPush>().empty()) << "another worker gave them";
  EXPECT_EQ(take<Compute>().size(), 1U);
  give(Computed{0.5F});
  const auto sent = take<SendPush>();
  ASSERT_EQ(sent.size(), 3U);
  for (const SendPush& send : sent) EXPECT_FALSE(send.push.initial);
}

TEST_F(FirstValuesOfAWorker, FirstValuesInTheMiddleOfTheTrainingAreAnError) {
  begin_and_pull();
  ask_for_values(ShardId(0));
  ASSERT_EQ(take<Fail>().size(), 1U);
}

}  // namespace
}  // namespace disttrain::workerd
