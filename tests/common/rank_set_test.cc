#include "common/rank_set.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "common/random.h"

namespace disttrain {
namespace {

std::vector<std::uint32_t> listed(const RankSet& ranks) {
  std::vector<std::uint32_t> all;
  ranks.each([&](Rank rank) { all.push_back(rank.value); });
  return all;
}

TEST(RankSet, IsASetOfNumbersInOrder) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, stream_of("ranks", 0));
    RankSet a, b;
    std::set<std::uint32_t> naive_a, naive_b, naive_both;
    for (int i = 0; i < 40; ++i) {
      const auto x = static_cast<std::uint32_t>(random.below(kMaxRoster));
      const auto y = static_cast<std::uint32_t>(random.below(kMaxRoster));
      a.insert(Rank(x));
      b.insert(Rank(y));
      b.insert(Rank(x / 2));
      naive_a.insert(x);
      naive_b.insert({y, x / 2});
    }
    for (std::uint32_t rank : naive_a)
      if (naive_b.count(rank) != 0) naive_both.insert(rank);
    EXPECT_EQ(listed(a), std::vector<std::uint32_t>(naive_a.begin(), naive_a.end()));
    EXPECT_EQ(listed(a & b), std::vector<std::uint32_t>(naive_both.begin(), naive_both.end()));
    EXPECT_EQ(a.size(), naive_a.size());
    EXPECT_TRUE((a & b).is_part_of(a));
    EXPECT_EQ(b.is_part_of(a), naive_both.size() == naive_b.size());
    for (std::uint32_t rank = 0; rank < kMaxRoster; ++rank)
      ASSERT_EQ(a.contains(Rank(rank)), naive_a.count(rank) != 0) << rank;
  }
}

TEST(RankSet, ItsWordsEndWithTheLastThatSaysSomething) {
  RankSet ranks;
  EXPECT_TRUE(ranks.empty());
  EXPECT_EQ(ranks.used_words(), 0U);
  ranks.insert(Rank(63));
  EXPECT_EQ(ranks.used_words(), 1U);
  ranks.insert(Rank(64));
  EXPECT_EQ(ranks.used_words(), 2U);
  ranks.insert(Rank(kMaxRoster - 1));
  EXPECT_EQ(ranks.used_words(), kMaxRoster / 64);
  EXPECT_FALSE(ranks.contains(Rank(kMaxRoster)));
}

}  // namespace
}  // namespace disttrain
