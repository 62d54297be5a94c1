// Channels that break, and shards that answer wrongly or not at all.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

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

}  // namespace
}  // namespace disttrain::workerd
