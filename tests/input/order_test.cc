#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "common/random.h"
#include "input/order.h"

namespace disttrain::input {
namespace {

using Order = std::vector<std::uint64_t>;

Order sorted(Order order) {
  std::sort(order.begin(), order.end());
  return order;
}

Order identity(std::uint64_t records) {
  Order order(records);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

// The whole order of an epoch.
Order order_of(const OrderOptions& options, std::uint32_t epoch) {
  Order order;
  EpochOrder(options).records_at(epoch, std::vector<Interval>{{0, options.records}}, order);
  return order;
}

OrderOptions options_of(std::uint64_t records, ShuffleKind shuffle, std::uint64_t seed) {
  OrderOptions options{.records = records, .shuffle = shuffle, .buffer = 7, .window = 3, .seed = seed, .blocks = {}};
  for (std::uint64_t begin = 0; begin < records; begin += 1 + begin % 5) options.blocks.push_back(begin);
  return options;
}

constexpr ShuffleKind kShuffles[] = {ShuffleKind::kEpoch, ShuffleKind::kBuffer, ShuffleKind::kBlocks};

TEST(EpochOrder, HasEachRecordOnce) {
  for (const ShuffleKind kind : {ShuffleKind::kNone, ShuffleKind::kEpoch, ShuffleKind::kBuffer, ShuffleKind::kBlocks}) {
    for (const std::uint64_t records : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 99, 100, 101, 1000, 4096, 5000}) {
      EXPECT_EQ(sorted(order_of(options_of(records, kind, 42), 3)), identity(records)) << records;
    }
  }
}

// Some of these sizes aren't a product of the network's two sides, so some numbers go through it again.
TEST(Permutation, FillGivesTheNumbersOfAt) {
  for (const std::uint64_t size : {1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 5000, 1'000'003}) {
    const Permutation permutation(size, 5, 6);
    for (const std::uint64_t first : {std::uint64_t{0}, size / 3, size - 1}) {
      Order filled(std::min<std::uint64_t>(size - first, 2000));
      permutation.fill(first, filled);
      for (std::size_t i = 0; i < filled.size(); ++i) ASSERT_EQ(filled[i], permutation.at(first + i)) << size;
    }
  }
}

TEST(EpochOrder, PositionsGiveTheSameRecordsOneByOneAndTogether) {
  for (const ShuffleKind kind : {ShuffleKind::kNone, ShuffleKind::kEpoch, ShuffleKind::kBuffer, ShuffleKind::kBlocks}) {
    const EpochOrder order(options_of(1000, kind, 42));
    Order all;
    order.records_at(3, std::vector<Interval>{{0, 1000}}, all);
    Order one;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      order.records_at(3, std::vector<Interval>{{i, i + 1}}, one);
      ASSERT_EQ(one, Order{all[i]}) << i;
    }
    order.records_at(3, std::vector<Interval>{{990, 1000}, {5, 5}, {3, 20}}, one);
    Order expected(all.begin() + 990, all.end());
    expected.insert(expected.end(), all.begin() + 3, all.begin() + 20);
    EXPECT_EQ(one, expected);
  }
}

class Bucketed : public testing::Test {
 protected:
  // Records whose lengths are 0 to 99, in batches of 10.
  OrderOptions options_with(std::uint64_t records, ShuffleKind shuffle, std::uint64_t batches,
                            std::uint64_t seed = 42) {
    lengths_.clear();
    Random random(9, 9);
    for (std::uint64_t i = 0; i < records; ++i) lengths_.push_back(static_cast<std::uint32_t>(random.below(100)));
    OrderOptions options = options_of(records, shuffle, seed);
    options.buckets = {.batch = 10, .batches = batches, .lengths = lengths_};
    return options;
  }

  // The sum over the batches of the longest record's length times the number of records.
  std::uint64_t padded(const Order& order) const {
    std::uint64_t sum = 0;
    for (std::size_t begin = 0; begin < order.size(); begin += 10) {
      const std::size_t end = std::min(begin + 10, order.size());
      std::uint32_t longest = 0;
      for (std::size_t i = begin; i < end; ++i) longest = std::max(longest, lengths_[order[i]]);
      sum += longest * (end - begin);
    }
    return sum;
  }

  std::vector<std::uint32_t> lengths_;
};

TEST_F(Bucketed, OrdersHaveEachRecordOnce) {
  for (const ShuffleKind kind : kShuffles)
    for (const std::uint64_t records : {1, 2, 9, 10, 11, 99, 100, 101, 1000, 5003})
      for (const std::uint64_t batches : {1, 3, 64})
        for (const std::uint32_t epoch : {0, 7})
          ASSERT_EQ(sorted(order_of(options_with(records, kind, batches), epoch)), identity(records)) << records;
}

TEST_F(Bucketed, WindowsKeepTheirRecordsAndBatchesHaveLengthsBesideEachOther) {
  OrderOptions options = options_with(1000, ShuffleKind::kEpoch, 20);
  const Order order = order_of(options, 3);
  options.buckets = {};
  const Order before = order_of(options, 3);
  for (std::size_t window = 0; window < 1000; window += 200) {
    const auto part = [window](const Order& all) {
      return Order(all.begin() + static_cast<std::ptrdiff_t>(window),
                   all.begin() + static_cast<std::ptrdiff_t>(window + 200));
    };
    EXPECT_EQ(sorted(part(order)), sorted(part(before)));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  // shortest and longest of each batch
    for (std::size_t batch = window; batch < window + 200; batch += 10) {
      std::vector<std::uint32_t> lengths;
      for (std::size_t i = batch; i < batch + 10; ++i) lengths.push_back(lengths_[order[i]]);
      ranges.emplace_back(lengths.front(), lengths.back());
      EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
    }
    EXPECT_FALSE(std::is_sorted(ranges.begin(), ranges.end())) << "the batches aren't shuffled";
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
  }
  EXPECT_LT(padded(order) * 10, padded(before) * 7);
}

TEST_F(Bucketed, OrdersAreAFunctionOfSeedAndEpochWhateverIsAskedFirst) {
  const OrderOptions options = options_with(1003, ShuffleKind::kBlocks, 4);
  const Order order = order_of(options, 1);
  EXPECT_NE(order_of(options, 2), order);
  const EpochOrder pieces(options);
  Random random(1, 1);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t begin = random.below(1003);
    const std::uint64_t end = begin + random.below(1003 - begin + 1);
    Order part;
    pieces.records_at(1, std::vector<Interval>{{begin, end}}, part);
    ASSERT_EQ(part, Order(order.begin() + static_cast<std::ptrdiff_t>(begin),
                          order.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  EXPECT_NE(order_of(options_with(1003, ShuffleKind::kBlocks, 4, 43), 1), order);
}

// A worker from another build must use the same order.
TEST_F(Bucketed, OrdersStayAsTheyEverWere) {
  OrderOptions options = options_of(8, ShuffleKind::kEpoch, 1);  // before: 6 1 2 0 3 4 7 5
  lengths_ = {3, 1, 2, 2, 1, 3, 1, 2};
  options.buckets = {.batch = 2, .batches = 3, .lengths = lengths_};
  EXPECT_EQ(order_of(options, 0), (Order{6, 1, 3, 0, 4, 2, 7, 5}));
}

TEST(EpochOrder, NoneIsFileOrder) {
  EXPECT_EQ(order_of(options_of(100, ShuffleKind::kNone, 1), 5), identity(100));
}

TEST(EpochOrder, IsAFunctionOfSeedAndEpoch) {
  for (const ShuffleKind kind : kShuffles) {
    const Order order = order_of(options_of(1000, kind, 1), 0);
    EXPECT_EQ(order_of(options_of(1000, kind, 1), 0), order);
    EXPECT_NE(order_of(options_of(1000, kind, 1), 1), order);
    EXPECT_NE(order_of(options_of(1000, kind, 2), 0), order);
  }
}

// The order must never change: a worker that is restarted, or that comes from another build, must use the same one.
TEST(EpochOrder, StaysAsItEverWas) {
  EXPECT_EQ(order_of(options_of(8, ShuffleKind::kEpoch, 1), 0), (Order{6, 1, 2, 0, 3, 4, 7, 5}));
  OrderOptions buffer = options_of(8, ShuffleKind::kBuffer, 1);
  buffer.buffer = 3;
  EXPECT_EQ(order_of(buffer, 0), (Order{1, 2, 4, 0, 5, 7, 3, 6}));
  EXPECT_EQ(order_of(options_of(8, ShuffleKind::kBlocks, 1), 0), (Order{6, 0, 3, 5, 4, 2, 1, 7}));
}

TEST(EpochOrder, EachRecordIsEquallyLikelyEverywhere) {
  constexpr int kEpochs = 20000;
  for (const std::uint64_t records : {5, 7}) {
    std::vector<std::vector<int>> counts(records, std::vector<int>(records));
    const EpochOrder order(options_of(records, ShuffleKind::kEpoch, 9));
    Order all;
    for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
      order.records_at(epoch, std::vector<Interval>{{0, records}}, all);
      for (std::size_t position = 0; position < records; ++position) ++counts[position][all[position]];
    }
    for (const auto& row : counts) {
      for (const int count : row)
        EXPECT_NEAR(count, kEpochs / static_cast<int>(records), 5 * 57);  // 57: standard deviation
    }
  }
}

// Records that follow each other in the order are as far apart in the file as those of a shuffled deck: a third of the
// records on average.
TEST(EpochOrder, NeighboursAreFarApart) {
  for (const std::uint64_t records : {1000, 1024, 65536, 100'000}) {
    const Order order = order_of(options_of(records, ShuffleKind::kEpoch, 5), 1);
    double sum = 0.0;
    for (std::size_t i = 1; i < order.size(); ++i)
      sum += std::abs(static_cast<double>(order[i]) - static_cast<double>(order[i - 1]));
    const double mean = sum / static_cast<double>((order.size() - 1) * records);
    EXPECT_NEAR(mean, 1.0 / 3.0, 1.5 / std::sqrt(static_cast<double>(records))) << records;
  }
}

// In each window of positions, all records of its blocks are visited and no others, and they are mixed.
TEST(EpochOrder, BlocksStayWithinTheirWindow) {
  OrderOptions options{.records = 1000, .shuffle = ShuffleKind::kBlocks, .window = 4, .seed = 3, .blocks = {}};
  for (std::uint64_t begin = 0; begin < 1000; begin += 10) options.blocks.push_back(begin);
  const Order order = order_of(options, 2);
  for (std::size_t window = 0; window < 25; ++window) {
    std::set<std::uint64_t> blocks;
    std::size_t changes = 0;
    for (std::size_t i = window * 40; i < window * 40 + 40; ++i) {
      blocks.insert(order[i] / 10);
      if (i > window * 40) changes += order[i] / 10 != order[i - 1] / 10 ? 1 : 0;
    }
    EXPECT_EQ(blocks.size(), 4U) << "window " << window;
    EXPECT_GT(changes, 20U) << "window " << window;
  }
  EXPECT_NE(order[0] / 40, order[40] / 40 - 1);
}

// The reference implementation: a simple shuffle buffer.
Order shuffle_through_real_buffer(std::uint64_t records, std::uint64_t buffer, std::uint64_t seed,
                                  std::uint32_t epoch) {
  Random random(seed, stream_of("shuffle", epoch));
  Order held, out;
  std::uint64_t next = 0;
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

TEST(EpochOrder, BufferIsWhatARealBufferGives) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    OrderOptions options = options_of(1 + seed * 7, ShuffleKind::kBuffer, seed);
    options.buffer = 1 + seed % 13;
    EXPECT_EQ(order_of(options, 2), shuffle_through_real_buffer(options.records, options.buffer, seed, 2))
        << "seed " << seed;
  }
}

TEST(EpochOrder, BufferBringsNoRecordEarlierThanItsLength) {
  const Order order = order_of(options_of(1000, ShuffleKind::kBuffer, 1), 0);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_LT(order[i], i + 7);
}

TEST(OwnOrderSeed, DiffersByRankAndSeed) {
  EXPECT_NE(own_order_seed(1, Rank(0)), own_order_seed(1, Rank(1)));
  EXPECT_NE(own_order_seed(1, Rank(0)), own_order_seed(2, Rank(0)));
  EXPECT_EQ(own_order_seed(1, Rank(1)), own_order_seed(1, Rank(1)));
}

TEST(EpochOrder, GivesTheOrderOfEachEpochInAnyOrderOfAsking) {
  for (const ShuffleKind kind : kShuffles) {
    const OrderOptions options = options_of(100, kind, 5);
    const EpochOrder order(options);
    Random random(1);
    Order records;
    for (int i = 0; i < 200; ++i) {
      const auto epoch = static_cast<std::uint32_t>(random.below(4));
      const std::uint64_t position = random.below(100);
      order.records_at(epoch, std::vector<Interval>{{position, position + 1}}, records);
      ASSERT_EQ(records, (Order{order_of(options, epoch)[position]}));
    }
  }
}

TEST(EpochOrder, GivesSeveralIntervalsInTheirOrder) {
  const EpochOrder order(options_of(10, ShuffleKind::kNone, 5));
  Order records = {99};
  order.records_at(0, std::vector<Interval>{{7, 9}, {1, 1}, {0, 2}}, records);
  EXPECT_EQ(records, (Order{7, 8, 0, 1}));
}

}  // namespace
}  // namespace disttrain::input
