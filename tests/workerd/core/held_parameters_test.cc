#include "workerd/core/held_parameters.h"

#include <gtest/gtest.h>

namespace disttrain::workerd {
namespace {

JobFacts two_shards() {
  JobFacts facts;
  facts.layout.shards = 2;
  facts.layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(1), 4, 0, 4}};
  return facts;
}

// Lets the shard answer a pull of everything.
void answer(Channels& channels, ShardId shard, Step version) {
  Actions actions;
  Channel& channel = channels.at(shard);
  ASSERT_TRUE(channel.connect(Sequence(0), actions));
  channel.begin_pull(Pull{1, false, Step(0), false}, actions);
  Parameters parameters;
  parameters.bucket = BucketId(shard.value);
  parameters.version = version;
  parameters.pull_id = 1;
  parameters.last = true;
  ASSERT_TRUE(channel.take(parameters, actions));
}

TEST(HeldParameters, TakeTheVersionsOfTheChannels) {
  Channels channels(two_shards());
  answer(channels, ShardId(0), Step(7));
  answer(channels, ShardId(1), Step(6));
  HeldParameters held(2, false);
  EXPECT_FALSE(held.is_any());
  EXPECT_TRUE(held.take(channels, false));
  EXPECT_FALSE(held.take(channels, false)) << "only once are they the first";
  EXPECT_EQ(held.versions(), (std::vector{Step(7), Step(6)}));
  EXPECT_EQ(held.version(), Step(7));
  EXPECT_EQ(held.landing(), held.newest()) << "there is one buffer";
}

TEST(HeldParameters, AnswersLandBesideTheNewest) {
  const Channels channels(two_shards());
  HeldParameters held(2, true);
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t landing = held.landing();
    EXPECT_NE(landing, held.newest());
    held.take(channels, false);
    EXPECT_EQ(held.newest(), landing);
  }
}

TEST(HeldParameters, AveragesAreNotTrained) {
  const Channels channels(two_shards());
  HeldParameters held(2, false);
  EXPECT_FALSE(held.are_trainable());
  held.take(channels, true);
  EXPECT_TRUE(held.is_any());
  EXPECT_FALSE(held.are_trainable());
  held.take(channels, false);
  EXPECT_TRUE(held.are_trainable());
}

}  // namespace
}  // namespace disttrain::workerd
