// Leases: when a worker asks for one, and which leases are void.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

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

}  // namespace
}  // namespace disttrain::workerd
