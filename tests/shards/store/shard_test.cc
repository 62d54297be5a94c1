// A shard's core and its store together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

// If an event could be handled within another one, the actions of the outer event would be lost.
TEST(ShardDeathTest, AnEventFromWithinAnotherIsABug) {
  struct Reenters final : Outside {
    Shard* shard = nullptr;
    void act(const Action&) override { shard->handle(Instant(), AttemptAbandoned{1}, *this); }
    void before_update(BucketId) override {}
    void goes_on() override {}
    void update_begins() override {}
    void update_ended() override {}
  };
  ShardOptions options;
  options.roster = roster_of(1);
  StoreOptions memory;
  memory.places = 1;
  Shard shard(small_layout(1), options, memory, {});
  Reenters outside;
  outside.shard = &shard;
  EXPECT_DEATH(shard.handle(Instant(), ChannelOpened{ChannelId(1), worker(0)}, outside), "check failed");
}

// A worker writes an infinity to its gradients after the shard has checked them. The shard reads lent memory twice, so
// it applies the infinity. It notices this in the result, and sends no parameters.
TEST(Shard, GradientsThatChangeAfterTheirCheckFailTheJob) {
  struct Races final : Outside {
    std::vector<float> lent = std::vector<float>(4, 0.5F);
    std::size_t replies = 0;
    std::string failed;
    void act(const Action& action) override {
      if (const auto* fail = std::get_if<FailJob>(&action)) failed = fail->reason;
      replies += std::holds_alternative<Reply>(action) ? 1 : 0;
    }
    void before_update(BucketId) override {}
    void goes_on() override {}
    void update_begins() override { lent[2] = std::numeric_limits<float>::infinity(); }
    void update_ended() override {}
  };
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(1);
  StoreOptions memory;
  memory.train = options.train;
  memory.places = 1;
  Shard shard(small_layout(1), options, memory, {});
  Races outside;
  shard.handle(Instant(), ChannelOpened{ChannelId(1), worker(0)}, outside);
  PushArrived event;
  event.channel = ChannelId(1);
  event.sequence = Sequence(1);
  event.push.clock = Step(1);
  event.push.want = Want::kBucket;
  event.payload_bytes = outside.lent.size() * sizeof(float);
  const auto read = shard.lend(event.channel, event.sequence, event.push, outside.lent, nullptr);
  ASSERT_TRUE(read) << read.error().message;
  shard.handle_push(Instant(), event, *read, outside);
  EXPECT_FALSE(event.nonfinite);
  EXPECT_THAT(outside.failed, testing::HasSubstr("aren't finite, in the bucket 0, which begins with the variable"));
  EXPECT_THAT(outside.failed, testing::HasSubstr("If a script writes to its gradients while they are pushed"));
  EXPECT_EQ(outside.replies, 0U);
}

}  // namespace
}  // namespace disttrain::shards::test
