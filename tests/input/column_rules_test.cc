// What becomes of a value in columns of several kinds, of bytes and of tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/input/column_rules_fixture.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// For the tests of all files that use the fixture.
INSTANTIATE_TEST_SUITE_P(Formats, ColumnRules, testing::ValuesIn(formats_of_columns()),
                         [](const testing::TestParamInfo<DataFormat>& of) { return name_of(of.param); });

// With and without a pass over the files that finds a vocabulary.
TEST_P(ColumnRules, ColumnWithoutAnyValueIsRefused) {
  const auto error_of = [this](const ColumnSection& section, const Cell& cell) {
    write_records(format(), folder_ / "file",
                  {{{"a", cell}, {"y", std::int64_t{1}}}, {{"a", cell}, {"y", std::int64_t{0}}}});
    const std::vector<ColumnSection> columns = {section, column_section("y", ColumnKind::kLabel)};
    return given_of(load_dataset(source_of(columns, std::uint64_t{1} << 30))).error;
  };
  const auto refused = HasSubstr("no record of the training set has a value in column 'a'");
  for (const ColumnSection& section : {category(), hashed(), numeric_or(0)}) {
    EXPECT_THAT(error_of(section, Null()), refused);
    if (format() == DataFormat::kParquet) continue;  // its footer counts only the nulls
    for (const char* text : {"", " ", "?", "nan"}) EXPECT_THAT(error_of(section, std::string(text)), refused);
  }
  if (format() == DataFormat::kParquet) return;
  EXPECT_THAT(error_of(numeric_or(0), kNan), refused);
  missing_ = {"-999"};
  EXPECT_THAT(error_of(numeric_or(0), -999.0), refused);
}

TEST_P(ColumnRules, LongTextsAreCutInErrors) {
  std::string text(39, 'a');
  for (int i = 0; i < 1000; ++i) text += "\xC3\xBC";
  const std::string shown = "'" + std::string(39, 'a') + "...'";
  expect_number_refused(numeric(), text, shown, std::string("2.5"));
  expect_refused(read(label(), std::string("2"), text, std::string("3")), shown);
  expect_refused(read(label({text}), text, std::string("3"), text), "(" + shown + ")");
  if (format() == DataFormat::kWebdataset) return;  // a name has at most 100 bytes
  write_records(format(), folder_ / "file", {{{text, std::string("1")}, {"y", std::int64_t{1}}}});
  const std::string error = given_of(load_dataset(source_of({numeric(), label()}, 1 << 30))).error;
  EXPECT_LT(error.size(), 500U);
}

// Editors write a byte order mark, and web pages no-break spaces. As words, labels that are numbers would be sorted as
// 1, 10, 2.
TEST_P(ColumnRules, BlanksAroundATextAreDropped) {
  const std::vector<std::string> blanks = {" ",          "\t",       "\r\n",         "\v",           "\f",
                                           "\xC2\x85",   "\xC2\xA0", "\xE2\x80\xAF", "\xE3\x80\x80", "\xEF\xBB\xBF",
                                           " \xC2\xA0\n"};
  for (const std::string& blank : blanks) {
    SCOPED_TRACE(testing::PrintToString(blank));
    for (const std::string& ten : {blank + "10", "10" + blank, blank + blank + "10" + blank})
      EXPECT_THAT(read(label(), std::string("2"), ten, std::string("1")).classes, ElementsAre(2, 10, 1));
    EXPECT_THAT(read(label(), std::string("b"), blank + "a" + blank, std::string("b")).classes, ElementsAre(1, 0, 1));
    EXPECT_THAT(read(label({"b", "a"}), std::string("b"), "a" + blank, std::string("b")).classes, ElementsAre(0, 1, 0));
    expect_word(blank + "red" + blank, "red");
    expect_word(blank, "");
    expect_number(numeric(), blank + "1.5" + blank, 1.5F, std::string("2.5"));
    expect_number(numeric_or(7), blank + "?" + blank, 7, std::string("2.5"));
    expect_refused(read(label(), std::string("2"), blank, std::string("1")), "no label in column 'a'");
  }
}

TEST_P(ColumnRules, BlanksWithinATextAndOtherCharactersAreKept) {
  expect_word(std::string("a\xC2\xA0z"), "a\xC2\xA0z");
  const std::string zero_width = "\xE2\x80\x8B";
  EXPECT_THAT(read(category({"red", zero_width + "red"}), std::string("red"), zero_width + "red", std::string("red"))
                  .categories,
              ElementsAre(1, 2, 1));
  EXPECT_THAT(read(bytes(4), std::string("xy"), std::string("\xC2\xA0y"), std::string("xy")).tokens,
              ElementsAre('x', 'y', 0, 0, 0xC2, 0xA0, 'y', 0, 'x', 'y', 0, 0));
  if (format() == DataFormat::kJsonl || format() == DataFormat::kParquet) return;  // their strings are UTF-8
  for (const char* piece : {"\xA0", "\xC2", "\xC2\xA0\xA0"})
    expect_refused(read(label(), std::string("a"), std::string("a") + piece, std::string("a")), "isn't UTF-8");
}

TEST_P(ColumnRules, Bytes) {
  const Cell other = std::string("xy");
  const Given given = read(bytes(4), other, std::string(" \xFF?"), other);
  if (format() == DataFormat::kJsonl) {
    EXPECT_THAT(given.error, HasSubstr("JSON"));  // JSON is UTF-8
    EXPECT_THAT(read(bytes(4), other, std::string(" ?"), other).tokens,
                ElementsAre('x', 'y', 0, 0, ' ', '?', 0, 0, 'x', 'y', 0, 0));
  } else {
    EXPECT_THAT(given.tokens, ElementsAre('x', 'y', 0, 0, ' ', 0xFF, '?', 0, 'x', 'y', 0, 0));
  }
  EXPECT_THAT(read(bytes(2), other, std::string(), other).tokens, ElementsAre('x', 'y', 0, 0, 'x', 'y'));
  EXPECT_THAT(read(bytes(2), other, std::string("?"), other).tokens, ElementsAre('x', 'y', '?', 0, 'x', 'y'));
  EXPECT_THAT(read(bytes(2), std::int64_t{7}, std::int64_t{12}, std::int64_t{7}).tokens,
              ElementsAre('7', 0, '1', '2', '7', 0));
  expect_refused(read(bytes(2), other, std::string("long"), other), "4 bytes");
  expect_refused(read(bytes(0, 2), other, std::string("long"), other), "4 bytes");
  if (format() == DataFormat::kCsv)
    EXPECT_THAT(read(bytes(2), other, Null(), other).tokens, ElementsAre('x', 'y', 0, 0, 'x', 'y'));
  else
    expect_refused(read(bytes(2), other, Null(), other), "no value");
}

TEST_P(ColumnRules, Tokens) {
  if (!has_lists(format())) return;
  using Ids = std::vector<std::int64_t>;
  const Ids other = {5, 6};
  EXPECT_THAT(read(tokens(), other, Ids{99}, other).tokens, ElementsAre(5, 6, 0, 99, 0, 0, 5, 6, 0));
  for (const std::int64_t id : {-1, 100}) expect_refused(read(tokens(), other, Ids{id}, other), "expected 0 to 99");
  expect_refused(read(tokens(), other, Ids{1, 2, 3, 4}, other), "4 tokens");
  expect_refused(read(tokens(), other, Ids{}, other), "no value");
  expect_refused(read(tokens(), other, Null(), other), "no value");
  // A column of a Parquet file has one type, and the error names no record.
  for (const Given& given :
       {read(tokens(), std::string("5"), std::string("6"), std::string("7")), read(tokens(), 1.5, kNan, kInfinity)})
    EXPECT_THAT(given.error, HasSubstr("column 'a'"));
}

// Many records with all kinds at the same time. Each format gives what the values of the records say.
TEST_P(ColumnRules, TwoHundredRecords) {
  std::vector<Record> records;
  const std::vector<std::string> colours = {"red", "green", "", "bl\xC3\xBC"};
  for (int i = 0; i < 200; ++i)
    records.push_back({{"x", 0.5 * i},
                       {"n", i % 7 == 0 ? Cell(Null()) : Cell(i % 5 == 0 ? kNan : 2.0 * i)},
                       {"whole", std::int64_t{i}},
                       {"flag", i % 3 == 0},
                       {"colour", colours[static_cast<std::size_t>(i) % 4]},
                       {"text", "t" + std::to_string(i % 11)},
                       {"id", std::int64_t{i % 13}},
                       {"w", 0.25 * (i % 4)},
                       {"y", std::int64_t{i % 3}}});
  write_records(format(), folder_ / "file", records);
  std::vector<ColumnSection> columns = {numeric("x"), numeric("n"), numeric("whole"), numeric("flag")};
  columns[1].missing = -1;
  for (const char* name : {"colour", "id"}) columns.push_back(column_section(name, ColumnKind::kCategory));
  columns.push_back(bytes(3));
  columns.back().name = "text";
  columns.push_back(column_section("w", ColumnKind::kWeight));
  columns.push_back(column_section("y", ColumnKind::kLabel));
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    if (format() == DataFormat::kParquet && memory == 1) continue;
    const Given given = given_of(load_dataset(source_of(columns, memory)));
    ASSERT_EQ(given.error, "");
    ASSERT_EQ(given.classes.size(), 200U);
    const std::vector<std::int64_t> colour_numbers = {4, 3, 1, 2};  // "", "blü", "green", "red"
    const std::vector<std::int64_t> id_numbers = {1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 3, 4, 5};  // as words: 0, 1, 10, 11
    for (std::size_t i = 0; i < 200; ++i) {
      const auto number = static_cast<float>(i);
      EXPECT_EQ(given.inputs[4 * i], 0.5F * number);
      EXPECT_EQ(given.inputs[4 * i + 1], i % 7 == 0 || i % 5 == 0 ? -1 : 2 * number);
      EXPECT_EQ(given.inputs[4 * i + 2], number);
      EXPECT_EQ(given.inputs[4 * i + 3], i % 3 == 0 ? 1 : 0);
      EXPECT_EQ(given.categories[2 * i], colour_numbers[i % 4]);
      EXPECT_EQ(given.categories[2 * i + 1], id_numbers[i % 13]);
      EXPECT_EQ(given.tokens[3 * i], 't');
      EXPECT_EQ(given.tokens[3 * i + 1], i % 11 == 10 ? '1' : '0' + static_cast<int>(i % 11));
      EXPECT_EQ(given.weights[i], 0.25F * static_cast<float>(i % 4));
      EXPECT_EQ(given.classes[i], static_cast<std::int64_t>(i % 3));
    }
  }
}

}  // namespace
}  // namespace disttrain::input
