// sync with many workers: the counts that make a step linear in their number, and the order of the answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "shards/core/shard_core.h"
#include "shards/core/staging.h"
#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
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

// "w0b1": worker 0 gets bucket 1; "sum 1": bucket 1 is updated.
std::vector<std::string> answers_to(std::uint32_t workers) {
  const Layout layout = small_layout(3);  // two buckets on each shard
  ShardOptions options;
  options.shard = ShardId(2);
  options.train.mode = Mode::kSync;
  options.train.batch_size = 1;
  options.roster = roster_of(workers);
  ShardCore core(layout, options);
  const std::vector<BucketId> buckets = buckets_of(layout, ShardId(2));
  EXPECT_EQ(buckets.size(), 2U);
  Actions actions;
  const Instant now;
  for (std::uint32_t w = 0; w < workers; ++w) {
    const ChannelId channel(w + 1);
    core.step(now, ChannelOpened{channel, worker(w)}, actions);
    for (std::size_t b = 0; b < 2; ++b) {
      Push push = last_frame(1);
      push.bucket = buckets[b];
      push.last = b == 1;
      push.want = b == 1 ? Want::kAll : Want::kNothing;
      core.step(now, PushArrived{channel, Sequence(b + 1), push, layout.buckets[buckets[b].value].words * 4}, actions);
    }
  }
  actions.clear();
  Commit commit;
  commit.step = Step(1);
  commit.roster = options.roster.version;
  for (std::uint32_t w = 0; w < workers; ++w) commit.members.insert(Rank(w));
  core.step(now, CommitArrived{commit}, actions);
  std::vector<std::string> order;
  const auto index = [&](BucketId bucket) { return std::to_string(bucket == buckets[0] ? 0 : 1); };
  for (const Action& action : actions) {
    if (const auto* sum = std::get_if<SumAndApply>(&action)) order.push_back("sum " + index(sum->bucket));
    if (const auto* reply = std::get_if<Reply>(&action))
      order.push_back("w" + std::to_string(reply->channel.value - 1) + "b" + index(reply->message.bucket) +
                      (reply->message.last ? "." : ""));
  }
  return order;
}

TEST(Answers, FewWorkersGetEachBucketAsSoonAsItIsUpdated) {
  EXPECT_THAT(answers_to(2), testing::ElementsAre("sum 1", "w0b1", "w1b1", "sum 0", "w0b0.", "w1b0."));
}

TEST(Answers, ManyWorkersGetAllTheirBucketsOneWorkerAfterTheOther) {
  const std::vector<std::string> order = answers_to(10);
  ASSERT_EQ(order.size(), 22U);
  EXPECT_EQ(order[9], "sum 0") << "after bucket 1 of 8 workers";
  EXPECT_THAT(std::vector(order.begin() + 18, order.end()), testing::ElementsAre("w8b1", "w8b0.", "w9b1", "w9b0."));
}

}  // namespace
}  // namespace disttrain::shards::test
