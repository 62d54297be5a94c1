#include "input/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "input/lines.h"
#include "tests/input/blocks.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Jsonl : public testing::Test {
 protected:
  std::string decode(const std::string& content, const std::vector<WantedColumn>& wanted) {
    content_ = content;
    const RecordBlock block = block_of(content_);
    EXPECT_TRUE(find_lines(block, places_));
    JsonlDecoder decoder(wanted);
    return error_of(decoder.decode(block, places_, table_));
  }
  std::string decode_floats(const std::string& content) { return decode(content, {{"x", ValueKind::kFloat}}); }
  std::string decode_integers(const std::string& content) { return decode(content, {{"x", ValueKind::kInteger}}); }
  std::string decode_bytes(const std::string& content) { return decode(content, {{"x", ValueKind::kBytes}}); }

  std::string content_;
  std::vector<RecordPlace> places_;
  Table table_;
};

TEST_F(Jsonl, ObjectsBecomeColumns) {
  ASSERT_EQ(decode("{\"x\": 1.5, \"y\": -3, \"w\": \"cat\", \"z\": {\"x\": 9}}\n"
                   " { \"w\" : \"a\\u00e9\\n\" , \"x\":2e1 ,\"y\":9223372036854775807 } \r\n"
                   "{\"y\":0,\"w\":\"\",\"x\":true}",
                   {{"x", ValueKind::kFloat}, {"y", ValueKind::kInteger}, {"w", ValueKind::kBytes}}),
            "");
  EXPECT_EQ(table_.records, 3U);
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(1.5F, 20, 1));
  EXPECT_THAT(table_.columns[0].lengths, IsEmpty());
  EXPECT_THAT(table_.columns[1].integers, ElementsAre(-3, std::numeric_limits<std::int64_t>::max(), 0));
  EXPECT_THAT(table_.columns[2].bytes, ElementsAre("cat", "a\xc3\xa9\n", ""));
}

TEST_F(Jsonl, BytesPointIntoTheBlockUnlessTheyHaveEscapes) {
  ASSERT_EQ(decode_bytes("{\"x\":\"one\"}\n{\"x\":\"two\\\\\"}\n"), "");
  EXPECT_EQ(table_.columns[0].bytes[0].data(), content_.data() + 6);
  EXPECT_EQ(table_.columns[0].bytes[1], "two\\");
}

TEST_F(Jsonl, LastOfEqualNamesCountsWithAllItsMembers) {
  const std::vector<WantedColumn> wanted = {{"a.b", ValueKind::kFloat}, {"a.c.d", ValueKind::kFloat}};
  ASSERT_EQ(decode("{\"a\":{\"b\":1},\"a\":{\"c\":{\"d\":2}}}\n"
                   "{\"a\":{\"b\":3,\"c\":{\"d\":4}},\"a\":null}\n"
                   "{\"a\":{\"c\":{\"d\":5}},\"a\":{\"b\":6}}\n"
                   "{\"a.b\":7,\"a\":{\"c\":{\"d\":8,\"d\":9}}}\n",
                   wanted),
            "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(6, 7));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(2, 9));
  EXPECT_THAT(table_.columns[1].lengths, ElementsAre(1, 0, 0, 1));
}

TEST_F(Jsonl, DotsNameMembersOfObjects) {
  const std::vector<WantedColumn> wanted = {
      {"a.b", ValueKind::kFloat}, {"a.c.d", ValueKind::kFloat}, {"b", ValueKind::kFloat}};
  ASSERT_EQ(decode("{\"b\":1,\"a\":{\"c\":{\"d\":2,\"b\":7},\"b\":3}}\n{\"a.b\":4,\"b\":5,\"a.c.d\":6}\n", wanted), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(3, 4));
  EXPECT_THAT(table_.columns[1].floats, ElementsAre(2, 6));
  EXPECT_THAT(table_.columns[2].floats, ElementsAre(1, 5));
  ASSERT_EQ(decode("{\"a\":3}\n{\"a\":null}\n{\"a\":[{\"b\":1}]}\n", {wanted[0]}), "");
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(0, 0, 0));
}

TEST_F(Jsonl, ArraysGiveTheirElements) {
  ASSERT_EQ(decode_floats("{\"x\":[1, 2.5,null]}\n{\"x\":[]}\n{\"x\":[[3,4],[5,true]]}\n"), "");
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(3, 0, 4));
  ASSERT_EQ(table_.columns[0].floats.size(), 7U);
  EXPECT_TRUE(std::isnan(table_.columns[0].floats[2]));
  EXPECT_EQ(table_.columns[0].floats[5], 5.0F);
  ASSERT_EQ(decode_bytes("{\"x\":[\"a\",\"b\\t\"]}\n"), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("a", "b\t"));
}

TEST_F(Jsonl, ArraysInArraysHaveTheShapeOfTheColumn) {
  const auto read = [this](const std::string& array, const std::vector<std::uint32_t>& shape) {
    return decode("{\"x\":" + array + "}", {{.name = "x", .kind = ValueKind::kFloat, .shape = shape}});
  };
  for (const char* array :
       {"[[1,2,3],[4,5,6]]", "[1,2,3,4,5,6]", "[[[1],[2],[3]],[[4],[5],[6]]]", "[[1,2,null],[4,5,NaN]]", "[]",
        "[[],[]]", "null", "[[[1,2,3],[4,5,6]]]", "[[1,2,3,4,5,6]]"})
    EXPECT_EQ(read(array, {2, 3}), "") << array;
  for (const char* array : {"[[1,2],[3,4],[5,6]]", "[[1],[2,3,4,5,6]]", "[[1,2,3],4,5,6]", "[[1,2,3,4,5,6],null]",
                            "[[[1,2,3],[4,5,6]],[]]"})
    EXPECT_THAT(read(array, {2, 3}),
                HasSubstr("found arrays of another shape in column 'x', expected lists of the shape "
                          "[2, 3], or one list of all values: correct the line"))
        << array;
  EXPECT_EQ(read("[[1,2],[3,4],[5,6]]", {6}), "") << "the column has no lists within its list";
  EXPECT_EQ(read("[[1,2,3],[4,5,6]]", {1, 2, 3}), "");
}

TEST_F(Jsonl, NullAndAbsentValuesAreMissing) {
  ASSERT_EQ(decode_integers("{\"x\":null}\n{}\n{\"x\":7}\n{\"y\":\"x\"}\n"), "");
  EXPECT_THAT(table_.columns[0].integers, ElementsAre(7));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(0, 0, 1, 0));
}

TEST_F(Jsonl, LastOfTwoValuesCounts) {
  ASSERT_EQ(decode_floats("{\"x\":[1,2],\"x\":3}\n{\"x\":1,\"x\":null}\n"), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(3));
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(1, 0));
}

TEST_F(Jsonl, OneNameMayFillTwoColumns) {
  ASSERT_EQ(decode("{\"x\":5 }\n{\"x\":true}", {{"x", ValueKind::kFloat}, {"x", ValueKind::kBytes}}), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(5, 1));
  EXPECT_THAT(table_.columns[1].bytes, ElementsAre("5", "1"));
}

TEST_F(Jsonl, WholeNumbersAreTheSameBytesHoweverTheyAreWritten) {
  ASSERT_EQ(decode_bytes("{\"x\":[100000,100000.0,1e5,0,-0,-0.0,1.5,9007199254740993]}\n"), "");
  EXPECT_THAT(table_.columns[0].bytes,
              ElementsAre("100000", "100000", "100000", "0", "0", "0", "1.5", "9007199254740993"));
}

TEST_F(Jsonl, NumbersBeyondTheRangeOfADoubleAreInfinities) {
  const std::string digits(400, '7');
  ASSERT_EQ(
      decode_floats("{\"x\":1e39}\n{\"x\":1e400}\n{\"x\":[-2.5E+999 , 1]}\n{\"x\":" + digits + "}\n{\"x\":1e-400}\n"),
      "");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(kInfinity, kInfinity, -kInfinity, 1, kInfinity, 0));
  ASSERT_EQ(decode_bytes("{\"x\":1e400}\n{\"x\":-" + digits + "}\n"), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("inf", "-" + digits));
}

TEST_F(Jsonl, KeysMayHaveEscapes) {
  ASSERT_EQ(decode_floats("{\"\\u0078\":5}\n"), "");
  EXPECT_THAT(table_.columns[0].floats, ElementsAre(5));
}

TEST_F(Jsonl, WrongTypesNameLineAndColumn) {
  EXPECT_EQ(decode_floats("{\"x\":1}\n\n{\"x\":\"one\"}\n"),
            "x:3: the string 'one' in column 'x', expected a finite number: correct the record, add the word to "
            "data.missing, or give the column the kind \"category\"");
  EXPECT_THAT(decode_integers("{\"x\":\"1\"}\n"),
              HasSubstr("found the string '1' in column 'x', expected whole numbers"));
  EXPECT_THAT(decode_floats("{\"x\":{}}\n"), HasSubstr("found an object in column 'x', expected numbers"));
  EXPECT_THAT(decode_integers("{\"x\":1.0}\n"),
              HasSubstr("found the number '1.0' in column 'x', expected whole numbers"));
  EXPECT_THAT(decode_integers("{\"x\":9223372036854775808}\n"), HasSubstr("expected whole numbers"));
  EXPECT_THAT(decode_integers("{\"x\":[null]}\n"), HasSubstr("found null in an array in column 'x'"));
  EXPECT_THAT(decode_bytes("{\"x\":[[]]}\n{\"x\":{}}\n"),
              HasSubstr("x:2: found an object in column 'x', expected strings"));
}

TEST_F(Jsonl, LinesThatAreNoObjectsAreRefused) {
  EXPECT_THAT(decode_floats("[1]\n"), HasSubstr("x:1: found an array, expected a JSON object"));
  for (const char* line : {"7",
                           "\"x\"",
                           "null",
                           "tru",
                           "x",
                           "{",
                           "}",
                           "{\"x\"}",
                           "{\"x\":}",
                           "{\"x\":1",
                           "{\"x\":1,}",
                           "{\"x\":1}}",
                           "{\"x\":1}{\"x\":2}",
                           "{\"x\":1} 2",
                           "{\"x\":nul}",
                           "{\"x\":trueish}",
                           "{\"x\":01}",
                           "{\"x\":1x}",
                           "{\"x\":[1}",
                           "{\"x\":[1 2]}",
                           "{\"x\":\"\xff\"}",
                           "{\"x\":1 \"y\":2}"})
    EXPECT_THAT(decode_floats(line), HasSubstr("x:1: found ")) << line;
}

TEST_F(Jsonl, TextBehindAnObjectIsNamed) {
  const std::string object = R"({"x":1,"s":"}\"{","o":{"x":[{}]}})";
  for (const char* more : {"x", "2", ",", "]", "}", "\"open", "}}", "// a comment"})
    EXPECT_EQ(decode_floats("\n " + object + " " + more + " \r\n"),
              "x:2: found the text '" + std::string(more) +
                  "' behind the JSON object, expected one object on each line: correct the line");
  for (const char* more : {object.c_str(), "{", "{\"x\":"})
    EXPECT_THAT(decode_floats(object + more), HasSubstr("found more than one JSON value, expected one on each line"));
  for (const char* cut : {"{\"x\":1", "{\"y\":{}", "{\"x\":\"}", "{\"x\":\"\\\"}"})
    EXPECT_THAT(decode_floats(cut), HasSubstr("found a line that isn't valid JSON (")) << cut;
}

// Python's json module writes and reads them.
TEST_F(Jsonl, NumbersThatJsonLacksAreNumbers) {
  ASSERT_EQ(decode_floats("{\"x\": NaN }\n{\"x\":[1,Infinity, -Infinity]}\n{\"y\":NaN,\"x\":2}\n"), "");
  const std::vector<float>& floats = table_.columns[0].floats;
  ASSERT_EQ(floats.size(), 5U);
  EXPECT_TRUE(std::isnan(floats[0]));
  EXPECT_EQ(floats[2], std::numeric_limits<float>::infinity());
  EXPECT_EQ(floats[3], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(floats[4], 2);
  EXPECT_THAT(table_.columns[0].lengths, ElementsAre(1, 3, 1));
  ASSERT_EQ(decode_bytes("{\"x\":NaN}\n{\"x\":-Infinity}\n"), "");
  EXPECT_THAT(table_.columns[0].bytes, ElementsAre("nan", "-inf"));
  EXPECT_THAT(decode_integers("{\"x\":NaN}\n"),
              HasSubstr("found the number 'NaN' in column 'x', expected whole numbers"));
  for (const std::string number : {"nan", "-nan", "inf", "-NaN", "+Infinity", "NaNs"})
    for (const std::string& line : {"{\"x\":" + number + "}\n", "{\"x\": [1, " + number + " ]}\n"})
      EXPECT_EQ(decode_floats("{\"x\":1}\n" + line), "x:2: found '" + number +
                                                         "' in column 'x', which isn't valid JSON, expected numbers: "
                                                         "correct the line");
  EXPECT_THAT(decode_floats("{\"x\":1x}\n"),
              HasSubstr("x:1: found '1x' in column 'x', which isn't valid JSON, expected numbers: correct the line"));
}

TEST_F(Jsonl, DeepArraysAreRefused) {
  EXPECT_THAT(decode_floats("{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
              HasSubstr("found arrays in arrays in column 'x'"));
}

}  // namespace
}  // namespace disttrain::input
