// How long a worker waits, for what, and whose fault a long wait is.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

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

}  // namespace
}  // namespace disttrain::workerd
