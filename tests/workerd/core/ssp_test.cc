// The clock of a worker in ssp.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

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

}  // namespace
}  // namespace disttrain::workerd
