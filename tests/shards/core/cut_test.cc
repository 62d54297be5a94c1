// The cut of an asynchronous shard (shard_cut.cc), event by event: when the shard stops waiting for marks, and what
// happens if an attempt ends at any of its stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

using std::chrono::seconds;

// Two workers of an asynchronous job, with their channels open.
class CutTest : public testing::Test {
 protected:
  CutTest() {
    ShardOptions options;
    options.train.mode = Mode::kAsync;
    options.roster = roster_of(2);
    shard_ = std::make_unique<ShardCore>(layout_, options);
    for (std::uint32_t w : {0U, 1U}) step(ChannelOpened{ChannelId(w + 1), worker(w)});
  }

  // The actions that follow from the event.
  const Actions& step(const Event& event) {
    actions_.clear();
    shard_->step(now_, event, actions_);
    return actions_;
  }
  const Actions& mark(std::uint32_t worker_index, std::uint64_t attempt) {
    return step(MarkArrived{ChannelId(worker_index + 1), Mark{attempt}});
  }
  const Actions& wait_for_marks() { return step(MarksAwaited{seconds(10)}); }
  template <typename Action>
  std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(actions_.begin(), actions_.end(), [](const shards::Action& action) {
      return std::holds_alternative<Action>(action);
    }));
  }

  const Layout layout_ = small_layout(1);
  std::unique_ptr<ShardCore> shard_;
  Actions actions_;
  Instant now_{seconds(1000)};
};

TEST_F(CutTest, MarksThatDoNotComeAreGivenUpAfterAWhileAndOnlyThen) {
  step(AttemptPrepared{5});
  now_ += seconds(100);
  EXPECT_TRUE(wait_for_marks().empty()) << "no mark waits yet";
  mark(0, 5);
  now_ += seconds(9);
  EXPECT_TRUE(wait_for_marks().empty());
  now_ += seconds(1);
  wait_for_marks();
  ASSERT_EQ(count<MarksGivenUp>(), 1U);
  EXPECT_EQ(std::get<MarksGivenUp>(actions_[0]).attempt, 5U);
  EXPECT_EQ(count<SendMarkTaken>(), 1U);
  mark(1, 5);
  EXPECT_EQ(count<SendMarkTaken>(), 1U) << "a mark that comes too late is answered at once";
  EXPECT_EQ(count<CopyForCheckpoint>(), 0U);
  now_ += seconds(100);
  EXPECT_TRUE(wait_for_marks().empty()) << "it was reported once";
}

TEST_F(CutTest, MarksAfterTheCutGiveNothingUp) {
  step(AttemptPrepared{5});
  mark(0, 5);
  now_ += seconds(3);
  mark(1, 5);
  ASSERT_EQ(count<CopyForCheckpoint>(), 1U);
  EXPECT_EQ(std::get<CopyForCheckpoint>(actions_[0]).parked, Duration(seconds(3)));
  mark(0, 5);  // sent again over another connection
  now_ += seconds(100);
  EXPECT_TRUE(wait_for_marks().empty()) << "the chief would discard the copies of all shards";
}

TEST_F(CutTest, HoldIsNotEndedByMarksThatComeAgain) {
  step(AttemptPrepared{5, true});
  mark(0, 5);
  mark(1, 5);
  ASSERT_EQ(count<CopyForCheckpoint>(), 1U);
  EXPECT_TRUE(mark(0, 5).empty());
  now_ += seconds(100);
  EXPECT_TRUE(wait_for_marks().empty()) << "pushes would be lost by the rollback";
  step(AttemptAbandoned{5});
  EXPECT_EQ(count<SendMarkTaken>(), 2U);
}

TEST_F(CutTest, EndThatOvertakesTheOrderEndsIt) {
  step(AttemptAbandoned{5});
  EXPECT_TRUE(step(AttemptPrepared{5}).empty());
  mark(0, 5);
  EXPECT_EQ(count<SendMarkTaken>(), 1U) << "a mark of an ended attempt holds no worker";
}

TEST_F(CutTest, OrderThatIsRepeatedChangesNothing) {
  step(AttemptPrepared{5});
  mark(0, 5);
  EXPECT_TRUE(step(AttemptPrepared{5}).empty()) << "a marked worker stays marked";
  mark(1, 5);
  EXPECT_EQ(count<CopyForCheckpoint>(), 1U);
}

TEST_F(CutTest, MarkOfNoAttemptHoldsNobody) {
  EXPECT_EQ(mark(0, 0).size(), 1U);
  EXPECT_EQ(count<SendMarkTaken>(), 1U);
  now_ += seconds(100);
  EXPECT_TRUE(wait_for_marks().empty());
}

TEST_F(CutTest, AttemptThatFollowsWaitsForItsOwnMarks) {
  step(AttemptPrepared{5});
  mark(0, 5);
  now_ += seconds(100);
  step(AttemptPrepared{6});
  EXPECT_EQ(count<SendMarkTaken>(), 1U);
  EXPECT_TRUE(wait_for_marks().empty()) << "its first mark is still to come";
}

}  // namespace
}  // namespace disttrain::shards::test
