// A number has the same word whatever type it has in the file, so that it is the same category.
#include "input/number_word.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace disttrain::input {
namespace {

class NumberWord : public testing::Test {
 protected:
  template <typename T>
  std::string_view word(T number) {
    return number_word(number, texts_);
  }

  Texts texts_;
};

TEST_F(NumberWord, OfAWholeNumberIsThatOfTheInteger) {
  for (const std::int32_t number : {0, 1, -999, 12345, 100'000, -3'000'000, 1 << 24, 2'000'000'000}) {
    const std::string expected = std::to_string(number);
    EXPECT_EQ(word(number), expected);
    EXPECT_EQ(word(std::int64_t{number}), expected);
    EXPECT_EQ(word(double{1} * number), expected);
    EXPECT_EQ(word(static_cast<float>(number)), expected);
  }
  EXPECT_EQ(word(9007199254740991.0), "9007199254740991");
  EXPECT_EQ(word(-9007199254740991.0), "-9007199254740991");
  EXPECT_EQ(word(1e10F), "10000000000");
}

TEST_F(NumberWord, OfMinusZeroIsZero) {
  EXPECT_EQ(word(-0.0), "0");
  EXPECT_EQ(word(-0.0F), "0");
}

// A double beyond 2^53 stands for several whole numbers.
TEST_F(NumberWord, OfOtherNumbersIsTheShortest) {
  EXPECT_EQ(word(0.1), "0.1");
  EXPECT_EQ(word(0.1F), "0.1");
  EXPECT_EQ(word(-2.5e-7), "-2.5e-07");
  EXPECT_EQ(word(1e22), "1e+22");
  EXPECT_EQ(word(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(word(std::numeric_limits<float>::quiet_NaN()), "nan");
  EXPECT_EQ(word(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(word(true), "1");
}

}  // namespace
}  // namespace disttrain::input
