#include "common/positions.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TEST(Positions, AreAVectorOfIntervals) {
  Positions positions;
  std::vector<Interval> naive;
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::vector<Interval>(positions.begin(), positions.end()), naive);
    EXPECT_EQ(positions, Positions(naive));
    positions.push_back(Interval{i, 2 * i});
    naive.push_back(Interval{i, 2 * i});
    EXPECT_FALSE(positions == Positions());
    EXPECT_EQ(positions.back(), naive.back());
  }
  positions.clear();
  EXPECT_TRUE(positions.empty());
  positions = {{3, 4}, {5, 6}, {7, 9}};
  EXPECT_EQ(positions[2], (Interval{7, 9}));
  EXPECT_EQ(positions.size(), 3U);
}

}  // namespace
}  // namespace disttrain
