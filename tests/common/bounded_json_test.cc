#include "common/bounded_json.h"

#include <gtest/gtest.h>

#include <string>

namespace disttrain {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

TEST(BoundedJson, DeepTextIsDiscarded) {
  EXPECT_FALSE(parse_bounded_json(nested(kMaxJsonNesting)).is_discarded());
  EXPECT_TRUE(parse_bounded_json(nested(kMaxJsonNesting + 1)).is_discarded());
  EXPECT_TRUE(parse_bounded_json(nested(2'000'000)).is_discarded());
  EXPECT_TRUE(parse_bounded_json<nlohmann::ordered_json>("{\"a\":" + nested(kMaxJsonNesting) + "}").is_discarded());
}

TEST(BoundedJson, SiblingsArentNested) {
  std::string text = "[";
  for (int i = 0; i < 100; ++i) text += "[{}],";
  EXPECT_EQ(parse_bounded_json(text + "0]").size(), 101U);
}

TEST(BoundedJson, BracketsInStringsDontCount) {
  const std::string brackets(100, '[');
  EXPECT_EQ(parse_bounded_json("[\"" + brackets + "\"]").at(0), brackets);
  EXPECT_EQ(parse_bounded_json("[\"\\\"" + brackets + "\", \"\\\\\", 1]").at(2), 1);
  EXPECT_TRUE(parse_bounded_json("[\"\\\\\", " + nested(kMaxJsonNesting) + "]").is_discarded());
}

TEST(BoundedJson, TextOfTooManyValuesIsDiscarded) {
  std::string text = "[0";
  text.reserve(2 * kMaxJsonValues + 8);
  for (std::size_t i = 1; i < kMaxJsonValues; ++i) text += ",0";
  EXPECT_FALSE(exceeds_json_bounds(text + "]", kMaxJsonNesting, kMaxJsonValues));
  EXPECT_TRUE(parse_bounded_json(text + ",0]").is_discarded());
}

TEST(BoundedJson, ArraysInsideOfArraysCount) {
  EXPECT_FALSE(exceeds_json_bounds("[[[0]],[[0]]]", kMaxJsonNesting, 6));
  EXPECT_TRUE(exceeds_json_bounds("[[[0]],[[0]]]", kMaxJsonNesting, 5));
  EXPECT_TRUE(exceeds_json_bounds(R"({"a":{"b":{}}})", kMaxJsonNesting, 2));
}

TEST(BoundedJson, TextThatIsntJsonIsDiscarded) {
  for (const char* text : {"", "]]]]", "{", "\"", "\"\\", "[1,]"})
    EXPECT_TRUE(parse_bounded_json(text).is_discarded()) << text;
}

}  // namespace
}  // namespace disttrain
