#include "shards/core/cut_attempts.h"

#include <gtest/gtest.h>

namespace disttrain::shards {
namespace {

constexpr Instant kNow{std::chrono::seconds(3)};

TEST(CutAttempts, LaterOnesFollowEarlierOnes) {
  CutAttempts attempts;
  EXPECT_FALSE(attempts.is_current(0)) << "0 is no attempt";
  EXPECT_FALSE(attempts.is_held(0));
  attempts.prepare(4, false);
  EXPECT_TRUE(attempts.is_current(4));
  EXPECT_TRUE(attempts.is_known(3)) << "it comes too late";
  EXPECT_TRUE(attempts.is_known(4));
  EXPECT_FALSE(attempts.is_known(5));
  attempts.settle();
  EXPECT_EQ(attempts.current(), 0U);
  EXPECT_TRUE(attempts.is_known(4));
}

TEST(CutAttempts, OneThatWasAbandonedIsNotPreparedAfterwards) {
  CutAttempts attempts;
  attempts.prepare(4, false);
  attempts.settle_up_to(6);
  attempts.settle();
  EXPECT_TRUE(attempts.is_known(6));
  EXPECT_FALSE(attempts.is_known(7));
}

TEST(CutAttempts, MarksAndOrdersBelongToTheCurrentOne) {
  CutAttempts attempts;
  attempts.prepare(1, false);
  attempts.note_mark(kNow);
  attempts.note_mark(kNow + std::chrono::seconds(1));
  EXPECT_EQ(attempts.first_mark(), kNow);
  attempts.set_cut_at(Step(9));
  attempts.note_ordered();
  attempts.settle();
  EXPECT_FALSE(attempts.first_mark());
  EXPECT_FALSE(attempts.cut_at());
  EXPECT_EQ(attempts.ordered(), 1U) << "the order may have to be repeated";
}

TEST(CutAttempts, AHoldLastsUntilItIsEnded) {
  CutAttempts attempts;
  attempts.prepare(2, true);
  EXPECT_TRUE(attempts.holds());
  attempts.hold();
  attempts.settle();
  EXPECT_TRUE(attempts.is_held(2));
  attempts.end_hold();
  EXPECT_EQ(attempts.held(), 0U);
  attempts.prepare(3, false);
  EXPECT_FALSE(attempts.holds());
}

}  // namespace
}  // namespace disttrain::shards
