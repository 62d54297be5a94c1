#include "shards/core/first_values.h"

#include <gtest/gtest.h>

namespace disttrain::shards {
namespace {

const Member kA{TaskId{Role::kWorker, 0}, Incarnation(1)};
const Member kB{TaskId{Role::kWorker, 1}, Incarnation(2)};

TEST(FirstValues, NoneAreMissingIfTheShardHasThem) {
  const FirstValues values(3, false);
  EXPECT_FALSE(values.are_missing());
  EXPECT_FALSE(values.are_wanted_of(kA));
}

TEST(FirstValues, EachBucketCountsOnce) {
  FirstValues values(2, true);
  EXPECT_TRUE(values.ask(kA, ChannelId(1)));
  EXPECT_FALSE(values.ask(kA, ChannelId(1))) << "it was asked on this channel";
  EXPECT_TRUE(values.are_wanted_of(kA));
  EXPECT_FALSE(values.are_wanted_of(kB));
  values.take(1);
  values.take(1);
  EXPECT_TRUE(values.are_missing());
  EXPECT_TRUE(values.ask(kA, ChannelId(2))) << "its channel was lost";
  values.take(0);
  EXPECT_FALSE(values.are_missing()) << "what the same worker sent before counts";
}

TEST(FirstValues, AllComeFromOneWorker) {
  FirstValues values(2, true);
  values.ask(kA, ChannelId(1));
  values.take(0);
  EXPECT_TRUE(values.ask(kB, ChannelId(2)));
  EXPECT_FALSE(values.are_wanted_of(kA));
  values.take(1);
  EXPECT_TRUE(values.are_missing()) << "the first bucket is the other worker's";
  values.take(0);
  EXPECT_FALSE(values.are_missing());
}

}  // namespace
}  // namespace disttrain::shards
