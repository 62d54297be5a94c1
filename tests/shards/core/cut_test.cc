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

// The first worker sent its mark and waits until the attempt ends. The chief that ordered this attempt is gone. When a
// later chief gives up a later attempt, all earlier attempts must end, too.
TEST(AsyncShard, AnAttemptOfALaterTermThatIsGivenUpEndsThoseBeforeIt) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(2);
  const Layout layout = small_layout(1);
  ShardCore shard(layout, options);
  Actions actions;
  const std::uint64_t first = (std::uint64_t{1} << 32) + 7;
  for (std::uint32_t w : {0U, 1U}) shard.step({}, ChannelOpened{ChannelId(w + 1), worker(w)}, actions);
  shard.step({}, AttemptPrepared{first}, actions);
  shard.step({}, MarkArrived{ChannelId(1), Mark{first}}, actions);
  actions.clear();
  shard.step({}, AttemptAbandoned{first - 1}, actions);
  EXPECT_TRUE(actions.empty()) << "an earlier attempt";
  shard.step({}, AttemptAbandoned{std::uint64_t{2} << 32}, actions);
  ASSERT_EQ(actions.size(), 1U);
  const auto* taken = std::get_if<SendMarkTaken>(&actions[0]);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->channel, ChannelId(1));
}

// After this cut, the shards must apply no more pushes, because the rollback that follows would lose them.
TEST(AsyncShard, AnAttemptThatHoldsKeepsTheMarkedUntilItIsGivenUp) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(2);
  const Layout layout = small_layout(1);
  ShardCore shard(layout, options);
  Actions actions;
  for (std::uint32_t w : {0U, 1U}) shard.step({}, ChannelOpened{ChannelId(w + 1), worker(w)}, actions);
  shard.step({}, AttemptPrepared{5, true}, actions);
  shard.step({}, MarkArrived{ChannelId(1), Mark{5}}, actions);
  actions.clear();
  shard.step({}, MarkArrived{ChannelId(2), Mark{5}}, actions);
  ASSERT_EQ(actions.size(), 1U) << "the copy only: no worker is released";
  EXPECT_TRUE(std::holds_alternative<CopyForCheckpoint>(actions[0]));
  actions.clear();
  shard.step({}, MarkArrived{ChannelId(1), Mark{5}}, actions);
  EXPECT_TRUE(actions.empty()) << "the mark is sent again after a reconnection";
  Push push;
  push.clock = Step(1);
  push.last = true;
  EXPECT_FALSE(shard.landing(ChannelId(1), Sequence(1), push, layout.buckets[0].words * sizeof(float)));
  shard.step({}, AttemptAbandoned{4}, actions);
  EXPECT_TRUE(actions.empty()) << "an earlier attempt";
  shard.step({}, AttemptAbandoned{5}, actions);
  EXPECT_EQ(actions.size(), 2U);
  EXPECT_TRUE(shard.landing(ChannelId(1), Sequence(1), push, layout.buckets[0].words * sizeof(float)));
}

}  // namespace
}  // namespace disttrain::shards::test
