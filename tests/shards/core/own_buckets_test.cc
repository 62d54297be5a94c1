#include "shards/core/own_buckets.h"

#include <gtest/gtest.h>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards {
namespace {

TEST(OwnBuckets, EachBucketOfALayoutBelongsToOneShard) {
  const Layout layout = test::small_layout(2);
  std::size_t found = 0;
  for (const ShardId shard : {ShardId(0), ShardId(1)}) {
    const OwnBuckets own(layout, shard);
    for (std::uint32_t number = 0; number < own.size(); ++number) {
      EXPECT_EQ(own.number_of(own[number].id), number);
      EXPECT_EQ(layout.buckets[own[number].id.value].shard, shard);
      EXPECT_EQ(own[number].bytes, layout.buckets[own[number].id.value].words * sizeof(float));
      EXPECT_FALSE(own[number].first_variable.empty());
    }
    found += own.size();
  }
  EXPECT_EQ(found, layout.buckets.size());
}

TEST(OwnBuckets, OthersHaveNoNumber) {
  const Layout layout = test::small_layout(2);
  const OwnBuckets own(layout, ShardId(0));
  const OwnBuckets foreign(layout, ShardId(1));
  EXPECT_FALSE(own.number_of(foreign[0].id));
  EXPECT_FALSE(own.number_of(BucketId(static_cast<std::uint32_t>(layout.buckets.size()))));
}

}  // namespace
}  // namespace disttrain::shards
