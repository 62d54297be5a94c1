#include "workerd/core/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace disttrain::workerd {
namespace {

using testing::ElementsAre;

class BatchQueueTest : public testing::Test {
 protected:
  BatchQueueTest() {
    facts_.train_records = 35;
    facts_.config.train.batch_size = 10;
    facts_.config.train.epochs = 1;
    facts_.config.data.sharding = Sharding::kNone;
    facts_.config.data.prefetch = 3;
  }

  LeaseGrant lease(std::uint64_t id, std::uint64_t begin, std::uint64_t end) {
    LeaseGrant grant;
    grant.lease = Lease{};
    grant.lease->id = LeaseId(id);
    grant.lease->positions = {Interval{begin, end}};
    return grant;
  }
  // Removes and returns the tickets of the actions of one kind.
  std::vector<std::uint64_t> requested() {
    std::vector<std::uint64_t> tickets;
    for (const Action& action : std::exchange(actions_, {}))
      if (const auto* request = std::get_if<RequestBatch>(&action)) tickets.push_back(request->order.ticket.value);
    return tickets;
  }
  std::vector<std::uint64_t> dropped() {
    std::vector<std::uint64_t> tickets;
    for (const Action& action : std::exchange(actions_, {}))
      if (const auto* drop = std::get_if<DropBatch>(&action)) tickets.push_back(drop->ticket.value);
    return tickets;
  }
  bool asks(BatchQueue& queue) {
    queue.request_lease(0, actions_);
    return !std::exchange(actions_, {}).empty();
  }

  JobFacts facts_;
  Actions actions_;
};

TEST_F(BatchQueueTest, RequestsAsManyBatchesAsThePrefetchAllows) {
  BatchQueue queue(facts_);
  queue.fill(actions_);
  EXPECT_THAT(requested(), ElementsAre(1, 2, 3));
  EXPECT_EQ(queue.awaited(), BatchTicket(1));
  queue.note_ready(BatchTicket(2));
  EXPECT_FALSE(queue.is_ready()) << "the batches keep their order";
  queue.note_ready(BatchTicket(1));
  EXPECT_FALSE(queue.awaited());
  ASSERT_TRUE(queue.is_ready());
  EXPECT_EQ(queue.take().ticket, BatchTicket(1));
  queue.fill(actions_);
  EXPECT_THAT(requested(), ElementsAre(4));
  EXPECT_TRUE(queue.is_ready()) << "the second is ready";
  EXPECT_FALSE(queue.is_used_up());
  queue.drop_all(actions_);
  EXPECT_THAT(dropped(), ElementsAre(2, 3, 4));
  EXPECT_TRUE(queue.is_used_up());
}

TEST_F(BatchQueueTest, AsksForOneLeaseAtATime) {
  facts_.config.data.sharding = Sharding::kLease;
  BatchQueue queue(facts_);
  EXPECT_TRUE(asks(queue));
  EXPECT_FALSE(asks(queue));
  queue.ask_again();
  EXPECT_TRUE(asks(queue)) << "the chief may not have got it";
  queue.grant(lease(1, 0, 35));
  EXPECT_FALSE(asks(queue)) << "the lease suffices";
  queue.fill(actions_);
  EXPECT_THAT(requested(), ElementsAre(1, 2, 3));
}

TEST_F(BatchQueueTest, AsksAgainAfterATickIfAGrantBroughtNothing) {
  facts_.config.data.sharding = Sharding::kLease;
  BatchQueue queue(facts_);
  EXPECT_TRUE(asks(queue));
  queue.grant(LeaseGrant{});
  EXPECT_FALSE(asks(queue)) << "request and answer would go on without end";
  queue.tick();
  EXPECT_TRUE(asks(queue));
}

TEST_F(BatchQueueTest, AnotherRosterVoidsTheBatchesOfABlock) {
  facts_.config.data.sharding = Sharding::kLease;
  facts_.config.train.mode = Mode::kSync;
  BatchQueue queue(facts_);
  queue.change_roster(RosterVersion(1), Step(1), true, actions_);
  LeaseGrant block = lease(1, 0, 30);
  block.lease->first_step = Step(1);
  block.lease->steps = 3;
  block.lease->ranks = 1;
  block.lease->roster = RosterVersion(1);
  queue.grant(block);
  queue.fill(actions_);
  EXPECT_THAT(requested(), ElementsAre(1, 2, 3));
  queue.skip_to(Step(2), actions_);
  EXPECT_THAT(dropped(), ElementsAre(1));
  EXPECT_TRUE(asks(queue));
  queue.change_roster(RosterVersion(2), Step(2), false, actions_);
  EXPECT_THAT(dropped(), ElementsAre(2, 3));
  EXPECT_TRUE(asks(queue)) << "the request was for the other roster";
}

TEST_F(BatchQueueTest, RequestBeforeTheFirstRosterIsNotRepeated) {
  facts_.config.data.sharding = Sharding::kLease;
  facts_.config.train.mode = Mode::kSync;
  BatchQueue queue(facts_);
  EXPECT_TRUE(asks(queue));
  queue.change_roster(RosterVersion(1), Step(1), true, actions_);
  EXPECT_FALSE(asks(queue));
}

}  // namespace
}  // namespace disttrain::workerd
