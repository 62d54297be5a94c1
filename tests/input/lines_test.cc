#include "input/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "input/number_text.h"
#include "tests/input/blocks.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Lines : public testing::Test {
 protected:
  std::vector<std::string> find(const std::string& content, bool is_last = true) {
    const RecordBlock block = block_of(content, is_last);
    const auto covered = find_lines(block, places_);
    EXPECT_TRUE(covered) << covered.error().message;
    covered_ = covered.value_or(0);
    return texts_of(block, places_);
  }

  std::vector<RecordPlace> places_;
  std::size_t covered_ = 0;
};

TEST_F(Lines, EndWithLfOrCrlfOrTheFile) {
  EXPECT_THAT(find("a\nbc\r\n\"d\"\ne"), ElementsAre("a", "bc", "\"d\"", "e"));
  EXPECT_EQ(covered_, 11U);
  EXPECT_THAT(find("a\r\r\n"), ElementsAre("a\r"));
}

TEST_F(Lines, BlankOnesAreNoRecords) {
  EXPECT_THAT(find("\n \t\r\na\n\n\n"), ElementsAre("a"));
  EXPECT_EQ(covered_, 9U);
  EXPECT_THAT(find(""), IsEmpty());
}

TEST_F(Lines, ByteOrderMarkIsSkipped) {
  EXPECT_THAT(find("\xEF\xBB\xBF"
                   "a\nb\n"),
              ElementsAre("a", "b"));
}

TEST_F(Lines, BlockMayEndWithinALine) {
  EXPECT_THAT(find("a\nbc", false), ElementsAre("a"));
  EXPECT_EQ(covered_, 2U);
  EXPECT_THAT(find("a\nb\n", false), ElementsAre("a", "b"));
  EXPECT_EQ(covered_, 4U);
}

TEST_F(Lines, LongOnesAreRefused) {
  const std::string content = "a\n\n" + std::string(kMaxLineBytes + 1, 'x');
  for (const bool is_last : {false, true})
    EXPECT_THAT(error_of(find_lines(block_of(content, is_last), places_)), HasSubstr("x:3: a line of more than"));
  EXPECT_THAT(find("a\n" + std::string(kMaxLineBytes, 'x')), ElementsAre("a", testing::_));
}

TEST(NumberText, FloatsAreReadAsWritten) {
  EXPECT_EQ(float_in("0"), 0.0F);
  EXPECT_EQ(float_in("-12"), -12.0F);
  EXPECT_EQ(float_in("+12.5e-1"), 1.25F);
  EXPECT_EQ(float_in("999999999"), 999999999.0F);
  EXPECT_EQ(float_in("16777217"), 16777216.0F) << "rounded to even";
  EXPECT_EQ(float_in("12345678901234567890"), 12345678901234567890.0F);
  EXPECT_EQ(float_in("1e-60"), 0.0F);
  EXPECT_EQ(float_in("1e-400"), 0.0F);
  EXPECT_EQ(float_in("0." + std::string(400, '0') + "1"), 0.0F);
  for (const char* text : {"", "+", "-", "+-1", "--1", "1 ", " 1", "1x", "nan", "inf", "1e99", "1e400", "0x10", "1,5"})
    EXPECT_FALSE(float_in(text).has_value()) << text;
}

TEST(NumberText, NumbersBeyondTheRangeOfAFloatMayBeInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const char* text : {"1e39", "+1e400", "inf", "+Infinity"})
    EXPECT_EQ(float_or_infinity_in(text), kInfinity) << text;
  for (const char* text : {"-1e39", "-INF"}) EXPECT_EQ(float_or_infinity_in(text), -kInfinity) << text;
  EXPECT_EQ(float_or_infinity_in("-1e-400"), 0.0F);
  EXPECT_EQ(float_or_infinity_in("1.5"), 1.5F);
  for (const char* text : {"", "+", "+-inf", "nan", "nan(1)", "1e39x", "infin"})
    EXPECT_FALSE(float_or_infinity_in(text).has_value()) << text;
}

// from_chars gives one error for both.
TEST(NumberText, NumbersTooCloseToZeroAreToldFromThoseTooLarge) {
  const std::string zeros(400, '0');
  for (const std::string sign : {"", "-", "+"}) {
    for (const std::string& tiny :
         {"00." + zeros + "1", "." + zeros + "1e10", "0." + zeros + "123e+70", "1e-" + zeros + "500",
          "1" + zeros + "e-900", std::string("1e-99999999999999999999")}) {
      EXPECT_EQ(float_in(sign + tiny), 0.0F) << tiny;
      EXPECT_EQ(double_in(sign + tiny), 0.0) << tiny;
    }
    for (const std::string& huge :
         {"1" + zeros + "e-10", "0" + zeros + "1" + zeros, "0." + zeros + "1e800", "1" + zeros + ".5e1",
          std::string("0.1e99999999999999999999"), std::string("1e9223372036854775807")}) {
      EXPECT_FALSE(float_in(sign + huge).has_value()) << huge;
      EXPECT_FALSE(double_in(sign + huge).has_value()) << huge;
    }
  }
}

TEST(NumberText, DoublesAreReadAsFloatsAre) {
  EXPECT_EQ(double_in("+0.1"), 0.1);
  EXPECT_EQ(double_in("-1e300"), -1e300);
  EXPECT_EQ(double_in("1e-400"), 0.0);
  for (const char* text : {"", "+", "+-1", "++1", "1 ", "nan", "inf", "1e400"})
    EXPECT_FALSE(double_in(text).has_value()) << text;
}

TEST(NumberText, IntegersAreWhole) {
  EXPECT_EQ(integer_in("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer_in("+7"), 7);
  for (const char* text : {"", "+", "-", "+-1", "1.0", "1e3", "9223372036854775808", "1 "})
    EXPECT_FALSE(integer_in(text).has_value()) << text;
}

}  // namespace
}  // namespace disttrain::input
