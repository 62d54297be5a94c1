#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/random.h"
#include "workerd/input/order.h"

namespace disttrain::input {
namespace {

using Order = std::vector<std::uint32_t>;

Order sorted(Order order) {
  std::sort(order.begin(), order.end());
  return order;
}

Order identity(std::uint64_t records) {
  Order order(records);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

TEST(Permutation, HasEachRecordOnce) {
  for (const ShuffleKind kind : {ShuffleKind::kNone, ShuffleKind::kEpoch, ShuffleKind::kBuffer}) {
    for (const std::uint64_t records : {1, 2, 3, 10, 1000}) {
      EXPECT_EQ(sorted(permutation(records, kind, 7, 42, 3)), identity(records));
    }
  }
}

TEST(Permutation, NoneIsFileOrder) {
  EXPECT_EQ(permutation(100, ShuffleKind::kNone, 0, 1, 5), identity(100));
}

TEST(Permutation, IsAFunctionOfSeedAndEpoch) {
  for (const ShuffleKind kind : {ShuffleKind::kEpoch, ShuffleKind::kBuffer}) {
    const Order order = permutation(1000, kind, 50, 1, 0);
    EXPECT_EQ(permutation(1000, kind, 50, 1, 0), order);
    EXPECT_NE(permutation(1000, kind, 50, 1, 1), order);
    EXPECT_NE(permutation(1000, kind, 50, 2, 0), order);
  }
}

// The order must never change: a worker that is restarted, or that comes from another build, must use the same one.
TEST(Permutation, StaysAsItEverWas) {
  EXPECT_EQ(permutation(8, ShuffleKind::kEpoch, 0, 1, 0), (Order{0, 6, 7, 4, 3, 5, 1, 2}));
  EXPECT_EQ(permutation(8, ShuffleKind::kBuffer, 3, 1, 0), (Order{1, 2, 4, 0, 5, 7, 3, 6}));
}

TEST(Permutation, EachRecordIsEquallyLikelyEverywhere) {
  constexpr int kEpochs = 20000;
  int counts[5][5] = {};
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Order order = permutation(5, ShuffleKind::kEpoch, 0, 9, epoch);
    for (int position = 0; position < 5; ++position) ++counts[position][order[static_cast<std::size_t>(position)]];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, kEpochs / 5, 5 * 57);  // 57: standard deviation
  }
}

// The reference implementation: a simple shuffle buffer.
Order shuffle_through_real_buffer(std::uint64_t records, std::uint64_t buffer, std::uint64_t seed,
                                  std::uint32_t epoch) {
  Random random(seed, stream_of("shuffle", epoch));
  Order held, out;
  std::uint32_t next = 0;
  while (held.size() < buffer && next < records) held.push_back(next++);
  // The record that was drawn leaves the buffer, and the oldest record moves to its place. Then the next record of the
  // data set is appended. The real code has the same order in a ring.
  while (!held.empty()) {
    const std::size_t drawn = random.below(held.size());
    out.push_back(held[drawn]);
    held[drawn] = held.front();
    held.erase(held.begin());
    if (next < records) held.push_back(next++);
  }
  return out;
}

TEST(Permutation, BufferIsWhatARealBufferGives) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::uint64_t records = 1 + seed * 7;
    const std::uint64_t buffer = 1 + seed % 13;
    EXPECT_EQ(permutation(records, ShuffleKind::kBuffer, buffer, seed, 2),
              shuffle_through_real_buffer(records, buffer, seed, 2))
        << "seed " << seed;
  }
}

TEST(Permutation, BufferBringsNoRecordEarlierThanItsLength) {
  const Order order = permutation(1000, ShuffleKind::kBuffer, 10, 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_LT(order[i], i + 10);
}

TEST(OwnOrderSeed, DiffersByRankAndSeed) {
  EXPECT_NE(own_order_seed(1, Rank(0)), own_order_seed(1, Rank(1)));
  EXPECT_NE(own_order_seed(1, Rank(0)), own_order_seed(2, Rank(0)));
  EXPECT_EQ(own_order_seed(1, Rank(1)), own_order_seed(1, Rank(1)));
}

TEST(EpochOrder, GivesThePermutationOfEachEpochInAnyOrderOfAsking) {
  EpochOrder order(100, ShuffleKind::kEpoch, 0, 5);
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const auto epoch = static_cast<std::uint32_t>(random.below(4));
    const std::uint64_t position = random.below(100);
    EXPECT_EQ(order.record_at(epoch, position), permutation(100, ShuffleKind::kEpoch, 0, 5, epoch)[position]);
  }
}

TEST(EpochOrder, GivesSeveralIntervalsInTheirOrder) {
  EpochOrder order(10, ShuffleKind::kNone, 0, 5);
  std::vector<std::uint64_t> records = {99};
  order.records_at(0, std::vector<Interval>{{7, 9}, {1, 1}, {0, 2}}, records);
  EXPECT_EQ(records, (std::vector<std::uint64_t>{7, 8, 0, 1}));
}

}  // namespace
}  // namespace disttrain::input
