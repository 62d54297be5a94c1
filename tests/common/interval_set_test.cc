#include "common/interval_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/random.h"

namespace disttrain {
namespace {

using Intervals = std::vector<Interval>;

TEST(IntervalSet, TouchingIntervalsBecomeOne) {
  IntervalSet set;
  EXPECT_EQ(set.insert({0, 10}), 10u);
  EXPECT_EQ(set.insert({20, 30}), 10u);
  EXPECT_EQ(set.insert({10, 20}), 10u);
  EXPECT_EQ(set.to_vector(), (Intervals{{0, 30}}));
  EXPECT_EQ(set.size(), 30u);
}

TEST(IntervalSet, InsertTellsHowMuchWasNew) {
  IntervalSet set({{10, 20}, {30, 40}});
  EXPECT_EQ(set.insert({15, 35}), 10u);
  EXPECT_EQ(set.insert({15, 35}), 0u);
  EXPECT_EQ(set.insert({5, 45}), 10u);
}

TEST(IntervalSet, EmptyIntervalsChangeNothing) {
  IntervalSet set({{10, 20}});
  EXPECT_EQ(set.insert({15, 15}), 0u);
  EXPECT_EQ(set.insert({40, 30}), 0u);
  EXPECT_EQ(set.erase({18, 12}), 0u);
  EXPECT_TRUE(set.contains(Interval{50, 50}));
  EXPECT_TRUE(set.complement({7, 7}).empty());
  EXPECT_TRUE(set.complement({7, 3}).empty());
  EXPECT_EQ(set.to_vector(), (Intervals{{10, 20}}));
}

TEST(IntervalSet, EraseCutsAnIntervalInTwo) {
  IntervalSet set({{0, 10}});
  EXPECT_EQ(set.erase({3, 5}), 2u);
  EXPECT_EQ(set.to_vector(), (Intervals{{0, 3}, {5, 10}}));
  EXPECT_EQ(set.size(), 8u);
}

TEST(IntervalSet, ComplementIsWhatTheRangeLacks) {
  const IntervalSet set({{2, 4}, {6, 8}});
  EXPECT_EQ(set.complement({0, 10}), (Intervals{{0, 2}, {4, 6}, {8, 10}}));
  EXPECT_EQ(set.complement({3, 7}), (Intervals{{4, 6}}));
  EXPECT_EQ(set.complement({2, 4}), Intervals{});
  EXPECT_EQ(IntervalSet().complement({1, 3}), (Intervals{{1, 3}}));
}

TEST(IntervalSet, TheLargestPositionIsNeverInside) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  IntervalSet set;
  EXPECT_EQ(set.insert({0, kLast}), kLast);
  EXPECT_TRUE(set.contains(kLast - 1));
  EXPECT_FALSE(set.contains(kLast));
}

// A naive interval set, with one flag for each position.
class NaiveSet {
 public:
  static constexpr std::uint64_t kPositions = 60;

  std::uint64_t set(Interval interval, bool value) {
    std::uint64_t changed = 0;
    for (std::uint64_t p = interval.begin; p < interval.end; ++p) {
      changed += flags_[p] != value;
      flags_[p] = value;
    }
    return changed;
  }
  bool contains(Interval interval) const {
    for (std::uint64_t p = interval.begin; p < interval.end; ++p)
      if (!flags_[p]) return false;
    return true;
  }
  Intervals runs_of(bool value, Interval range) const {
    Intervals runs;
    for (std::uint64_t p = range.begin; p < range.end; ++p) {
      if (flags_[p] != value) continue;
      if (runs.empty() || runs.back().end != p) runs.push_back({p, p});
      runs.back().end = p + 1;
    }
    return runs;
  }
  std::uint64_t size() const { return static_cast<std::uint64_t>(std::count(flags_.begin(), flags_.end(), true)); }

 private:
  std::vector<bool> flags_ = std::vector<bool>(kPositions, false);
};

TEST(IntervalSet, AgreesWithANaiveTwinOnRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, stream_of("interval set test"));
    const auto draw = [&random] {
      const std::uint64_t begin = random.below(NaiveSet::kPositions);
      return Interval{begin, std::min(begin + random.below(12), NaiveSet::kPositions)};
    };
    IntervalSet set;
    NaiveSet twin;
    for (int operation = 0; operation < 100; ++operation) {
      const Interval changed = draw();
      if (random.below(3) > 0) {
        ASSERT_EQ(set.insert(changed), twin.set(changed, true));
      } else {
        ASSERT_EQ(set.erase(changed), twin.set(changed, false));
      }
      const Interval asked = draw();
      const Interval everything{0, NaiveSet::kPositions};
      ASSERT_EQ(set.to_vector(), twin.runs_of(true, everything));
      ASSERT_EQ(set.size(), twin.size());
      ASSERT_EQ(set.intervals(), twin.runs_of(true, everything).size());
      ASSERT_EQ(set.contains(asked), twin.contains(asked));
      ASSERT_EQ(set.contains(asked.begin), twin.contains({asked.begin, asked.begin + 1}));
      ASSERT_EQ(set.intersection(asked), twin.runs_of(true, asked));
      ASSERT_EQ(set.complement(asked), twin.runs_of(false, asked));
      ASSERT_EQ(set, IntervalSet(set.to_vector()));
    }
  }
}

}  // namespace
}  // namespace disttrain
