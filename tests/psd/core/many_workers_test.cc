// sync with many workers: the counts that make a step linear in their number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "psd/core/shard_core.h"
#include "psd/core/staging.h"
#include "tests/psd/core/shard_cluster.h"

namespace disttrain::psd::test {
namespace {

Push last_frame(std::uint64_t clock) {
  Push push;
  push.clock = Step(clock);
  push.last = true;
  push.examples = 1;
  return push;
}

TEST(Staging, CountsCompletePushesOfEachStep) {
  Staging staging(3, 2, 1);
  const auto add = [&](std::uint32_t place, std::uint64_t clock) {
    ASSERT_TRUE(staging.add(Place(place), last_frame(clock), 0, true, false));
  };
  add(0, 1);
  add(1, 1);
  add(0, 2);
  EXPECT_EQ(staging.complete(Step(1)), 2U);
  EXPECT_EQ(staging.complete(Step(2)), 1U);
  staging.drop(Place(0), Step(1));
  staging.drop(Place(0), Step(1));
  EXPECT_EQ(staging.complete(Step(1)), 1U);
  staging.drop_all(Place(1));
  EXPECT_EQ(staging.complete(Step(1)), 0U);
  add(2, 3);  // in the memory of step 1
  EXPECT_EQ(staging.complete(Step(3)), 1U);
}

TEST(Staging, CountsNoPushThatIsIncomplete) {
  Staging staging(1, 1, 2);
  Push push = last_frame(1);
  push.last = false;
  ASSERT_TRUE(staging.add(Place(0), push, 0, true, false));
  EXPECT_EQ(staging.complete(Step(1)), 0U);
  staging.drop(Place(0), Step(1));
  EXPECT_EQ(staging.complete(Step(1)), 0U);
}

TEST(FewestMembers, IsTheRosterOrTheAggregate) {
  EXPECT_EQ(fewest_members(5, 0), 5U);
  EXPECT_EQ(fewest_members(5, 3), 3U);
  EXPECT_EQ(fewest_members(2, 3), 2U);
  EXPECT_EQ(fewest_members(0, 0), 1U) << "a step needs a push";
}

}  // namespace
}  // namespace disttrain::psd::test
