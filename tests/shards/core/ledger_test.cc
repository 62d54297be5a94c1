// The records that the pushes visited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "common/interval_set.h"
#include "tests/shards/core/async_training.h"

namespace disttrain::shards::test {
namespace {

using testing::HasSubstr;

// I11: whatever the order of the pushes, the ledger has exactly the pushed records, and each epoch completes once.
TEST(Ledger, CompletesAnEpochWhenAllItsRecordsWereVisited) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    AsyncTraining run(2, async_train(0), 2, seed, 60);
    std::uint64_t next = 0;
    while (next < 120 || !run.models[0].ready() || !run.models[1].ready()) {
      for (WorkerModel& model : run.models)
        if (model.ready() && next < 120) {
          const Interval records{next % 60, next % 60 + 10};
          push_all(run.cluster, model, model.clock + 1, random_gradient(seed, 0, 1, 22),
                   {.lease = LeaseId(1), .epoch = static_cast<std::uint32_t>(next / 60), .visited = {records}});
          next += 10;
        }
      ASSERT_TRUE(run.cluster.deliver_one(run.random));
    }
    run.cluster.deliver_all(run.random);
    EXPECT_EQ(run.report().complete_epochs, 2U);
    EXPECT_TRUE(run.report().ledger.empty());
    EXPECT_EQ(run.report().examples, 120U);
  }
}

TEST(Ledger, RecordsThatDontExistCloseTheChannel) {
  AsyncTraining run(1, async_train(0), 1, 1, 60);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {.lease = LeaseId(1), .visited = {{55, 65}}});
  run.cluster.deliver_all(run.random);
  ASSERT_FALSE(run.cluster.closed.empty());
  EXPECT_THAT(run.cluster.closed[0], HasSubstr("[55, 65)"));
  EXPECT_EQ(run.report().global_step, Step(0));
}

}  // namespace
}  // namespace disttrain::shards::test
