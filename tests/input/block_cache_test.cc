#include "input/block_cache.h"

#include <gtest/gtest.h>

namespace disttrain::input {
namespace {

BlockOfRows block_of_bytes(SpareRows& spares, std::uint64_t bytes) {
  std::unique_ptr<EncodedRows> rows = spares.take();
  rows->inputs.resize(bytes / sizeof(float));
  return spares.keep(std::move(rows));
}

TEST(BlockCache, BlockIsMadeByOneThread) {
  SpareRows spares;
  BlockCache cache(100);
  EXPECT_TRUE(cache.claim(7, 40));
  EXPECT_FALSE(cache.claim(7, 40));
  const BlockOfRows made = block_of_bytes(spares, 40);
  cache.put(7, made);
  EXPECT_EQ(**cache.get(7), made);
  EXPECT_FALSE(cache.claim(7, 40));
}

TEST(BlockCache, OldBlocksAreDroppedBeforeAnotherIsMade) {
  SpareRows spares;
  BlockCache cache(100);
  for (const std::size_t block : {1, 2}) {
    ASSERT_TRUE(cache.claim(block, 40));
    cache.put(block, block_of_bytes(spares, 40));
  }
  ASSERT_TRUE(cache.get(1));  // block 2 is now the oldest
  EXPECT_TRUE(cache.claim(3, 40));
  EXPECT_EQ(cache.bytes(), 80U);
  EXPECT_FALSE(cache.get(2));
  EXPECT_TRUE(cache.get(1));
}

TEST(BlockCache, ErrorGoesToThreadsThatWait) {
  BlockCache cache(100);
  ASSERT_TRUE(cache.claim(1, 40));
  cache.put(1, fail(ErrorCode::kData, "bad"));
  EXPECT_EQ(cache.get(1)->error().message, "bad");
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_TRUE(cache.claim(1, 40));
}

TEST(SpareRows, MemoryOfABlockIsUsedAgainWhenNobodyUsesIt) {
  SpareRows spares;
  BlockOfRows first = block_of_bytes(spares, 4000);
  const float* const memory = first->inputs.data();
  BlockOfRows second = first;
  first.reset();
  EXPECT_EQ(spares.take()->inputs.capacity(), 0U);
  second.reset();
  const std::unique_ptr<EncodedRows> again = spares.take();
  EXPECT_EQ(again->inputs.data(), memory);
  EXPECT_TRUE(again->inputs.empty());
}

}  // namespace
}  // namespace disttrain::input
