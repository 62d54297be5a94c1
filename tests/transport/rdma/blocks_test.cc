// The blocks of memory that a peer shares.
#include <gtest/gtest.h>

#include "transport/rdma/blocks.h"

namespace disttrain::transport {
namespace {

TEST(RdmaBlocks, OnlyBytesWithinABlockAreFound) {
  using Use = RdmaBlock::Use;
  RemoteBlocks blocks;
  ASSERT_TRUE(blocks.add({.block = 1, .use = Use::kRead, .key = 5, .address = 1 << 20, .bytes = 4096}));
  const auto found = blocks.find(1, Use::kRead, 64, 4032);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, (1u << 20) + 64);
  EXPECT_EQ(found->key, 5u);
  EXPECT_FALSE(blocks.find(1, Use::kRead, 64, 4033));
  EXPECT_FALSE(blocks.find(1, Use::kRead, ~std::uint64_t{0} - 3, 8));
  EXPECT_FALSE(blocks.find(1, Use::kRead, 8, ~std::uint64_t{0}));
  EXPECT_FALSE(blocks.find(1, Use::kRead, 2, 8)) << "no float begins there";
  EXPECT_FALSE(blocks.find(1, Use::kWrite, 0, 8)) << "it may only be read";
  EXPECT_FALSE(blocks.find(2, Use::kRead, 0, 8));
}

TEST(RdmaBlocks, APeerSharesABlockOnceAndNotTooMany) {
  using Use = RdmaBlock::Use;
  RemoteBlocks blocks;
  for (std::uint64_t block = 0; block < kMaxRdmaBlocks; ++block) {
    ASSERT_TRUE(blocks.add({.block = block, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8})) << block;
    if (block == 0) {
      EXPECT_FALSE(blocks.add({.block = block, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8}));
    }
  }
  EXPECT_FALSE(blocks.add({.block = 99, .use = Use::kRead, .key = 1, .address = 4096, .bytes = 8}));
}

}  // namespace
}  // namespace disttrain::transport
