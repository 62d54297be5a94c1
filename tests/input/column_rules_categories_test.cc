// The values that a column of categories takes, and the errors of all others.
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
using testing::Not;

TEST_P(ColumnRules, CategoryWords) {
  expect_word(std::string("red"), "red");
  expect_word(std::string(" red\r\n"), "red");
  expect_word(std::string("gr\xC3\xBCn"), "gr\xC3\xBCn");
  expect_word(std::string("Inf"), "Inf");
  expect_word(std::string("007"), "007");
  expect_word(std::string("a\nb, \"c\""), "a\nb, \"c\"");
}

TEST_P(ColumnRules, CategoryEmptyNullNanAndMissingWords) {
  for (const Cell& cell :
       {Cell(std::string()), Cell(std::string(" ")), Cell(std::string("?")), Cell(std::string("nan")), Cell(Null())})
    expect_word(cell, "");
  for (const ColumnSection& section : {category(), hashed()}) {
    const Given given = read(section, 1.5, kNan, Null());
    EXPECT_EQ(given.categories[kCell], given.categories[2]);
    EXPECT_NE(given.categories[kCell], given.categories[0]);
  }
}

// A whole number is written as an integer, any other as the shortest text that gives it. A column of a Parquet file has
// one type, so its other values are numbers.
TEST_P(ColumnRules, CategoryNumbers) {
  const auto number_of = [this](const Cell& cell, const Cell& other, const std::string& word) {
    const Given given = read(category({word}), other, cell, other);
    EXPECT_EQ(given.error, "");
    return given.categories[kCell];
  };
  EXPECT_EQ(number_of(std::int64_t{5}, std::int64_t{1}, "5"), 1);
  EXPECT_EQ(number_of(std::int64_t{-9007199254740993}, std::int64_t{1}, "-9007199254740993"), 1);
  EXPECT_EQ(number_of(1.5, 2.5, "1.5"), 1);
  EXPECT_EQ(number_of(3.0, 2.5, "3"), 1);
  EXPECT_EQ(number_of(100000.0, 2.5, "100000"), 1);
  EXPECT_EQ(number_of(-3e6, 2.5, "-3000000"), 1);
  EXPECT_EQ(number_of(kInfinity, 2.5, "inf"), 1);
  EXPECT_EQ(number_of(true, false, "1"), 1);
}

TEST_P(ColumnRules, CategoryOfOtherBytes) {
  if (format() == DataFormat::kJsonl) return;  // JSON is UTF-8, so the line isn't JSON
  for (const ColumnSection& section : {category(), category({"red"}), hashed()}) {
    const Given given = read(section, std::string("red"), std::string("gr\xFCn"), std::string("red"));
    expect_refused(given, "0xfc, which isn't UTF-8");
    EXPECT_THAT(given.error, Not(HasSubstr("\xFC")));
    expect_refused(read(section, std::string("red"), std::string("a\0b", 3), std::string("red")), "NUL");
  }
}

TEST_P(ColumnRules, CategoryUnseen) {
  write_records(format(), folder_ / "file",
                {{{"a", std::string("red")}, {"y", std::int64_t{1}}},
                 {{"a", std::string("red")}, {"y", std::int64_t{1}}},
                 {{"a", std::string("blue")}, {"y", std::int64_t{1}}}});
  ColumnSection section = category();
  const std::vector<ColumnSection> columns = {section, column_section("y", ColumnKind::kLabel)};
  for (const std::uint64_t memory :
       {std::uint64_t{1} << 30, std::uint64_t{format() == DataFormat::kParquet ? 1u << 30 : 1u}}) {
    Source source = source_of(columns, memory);
    const auto training = load_dataset(source);
    ASSERT_TRUE(training) << training.error().message;
    EXPECT_EQ(given_of(load_dataset(source)).categories, (std::vector<std::int64_t>{2, 2, 1}));
    EXPECT_TRUE((*training)->unknown_words().empty());
    write_records(
        format(), folder_ / "test",
        {{{"a", std::string("green")}, {"y", std::int64_t{1}}}, {{"a", std::string("blue")}, {"y", std::int64_t{1}}}});
    source.files = "test";
    source.fitted = (*training)->fitted_columns();
    const auto test = load_dataset(source);
    ASSERT_TRUE(test) << test.error().message;
    std::vector<std::int64_t> found = gather<std::int64_t>(**test, {0, 1}, 0, DType::kInt64, 1);
    EXPECT_THAT(found, ElementsAre(0, 1));
    ASSERT_EQ((*test)->unknown_words().size(), 1U);
    EXPECT_EQ((*test)->unknown_words()[0].column, "a");
    EXPECT_EQ((*test)->unknown_words()[0].records, 1U);
    (void)gather<std::int64_t>(**test, {0, 1}, 0, DType::kInt64, 1);
    EXPECT_EQ((*test)->unknown_words()[0].records, 1U) << "a second evaluation";
    source.begin = 1;
    const auto rest = load_dataset(source);
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_THAT(gather<std::int64_t>(**rest, {0}, 0, DType::kInt64, 1), ElementsAre(1));
    EXPECT_TRUE((*rest)->unknown_words().empty()) << "green isn't one of its records";
    section.min_count = 2;
    source = source_of({section, columns[1]}, memory);
    EXPECT_EQ(given_of(load_dataset(source)).categories, (std::vector<std::int64_t>{1, 1, 0}));
  }
}

TEST_P(ColumnRules, CategoryOfSeveralWordsIsRefused) {
  if (!has_lists(format())) return;
  const std::vector<std::int64_t> one = {1};
  expect_refused(read(category(), one, std::vector<std::int64_t>{1, 2}, one), "2 values");
  EXPECT_EQ(read(category(), one, std::vector<std::int64_t>{}, one).error, "");
}

}  // namespace
}  // namespace disttrain::input
