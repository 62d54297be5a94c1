#include "common/format_duration.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

using namespace std::chrono_literals;

TEST(FormatDuration, TakesTheLargestUnit) {
  EXPECT_EQ(format_duration(1us), "1 us");
  EXPECT_EQ(format_duration(450us), "450 us");
  EXPECT_EQ(format_duration(3250us), "3.25 ms");
  EXPECT_EQ(format_duration(850ms), "850 ms");
  EXPECT_EQ(format_duration(1s), "1 s");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(2050ms), "2.05 s");
  EXPECT_EQ(format_duration(10050ms), "10 s");
  EXPECT_EQ(format_duration(120s), "120 s");
  EXPECT_EQ(format_duration(599s), "599 s");
  EXPECT_EQ(format_duration(10min), "10 min");
  EXPECT_EQ(format_duration(119min), "119 min");
  EXPECT_EQ(format_duration(2h), "2 h");
  EXPECT_EQ(format_duration(150min), "2.5 h");
  EXPECT_EQ(format_duration(30h), "30 h");
}

TEST(FormatDuration, RoundsTowardsZero) {
  EXPECT_EQ(format_duration(999'999us), "999 ms");
  EXPECT_EQ(format_duration(1'999ms), "1.99 s");
  EXPECT_EQ(format_duration(1'009ms), "1 s");
  EXPECT_EQ(format_duration(12'999ms), "12.9 s");
  EXPECT_EQ(format_duration(123'999ms), "123 s");
  EXPECT_EQ(format_duration(-1'999ms), "-1.99 s");
}

TEST(FormatDuration, HasWordsForEveryDuration) {
  EXPECT_EQ(format_duration(0ns), "0 s");
  EXPECT_EQ(format_duration(999ns), "0 s");
  EXPECT_EQ(format_duration(-999ns), "0 s");
  EXPECT_EQ(format_duration(-450us), "-450 us");
  EXPECT_EQ(format_duration(Duration::max()), "2562047 h");
  EXPECT_EQ(format_duration(Duration::min()), "-2562047 h");
}

}  // namespace
}  // namespace disttrain
