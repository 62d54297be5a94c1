// The values that a column of numbers takes, and the errors of all others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "input/columns.h"
#include "tests/input/column_rules_fixture.h"

namespace disttrain::input {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_P(ColumnRules, NumericText) {
  for (const char* text : {"-1.5", "+3", "1e2", ".5", "007"})
    expect_number(numeric(), std::string(text), std::stof(text), std::string("2.5"));
  for (const char* text :
       {"many", "1,5", "1 5", "0x10", "1_000", "1.5x", "--1", "\xEF\xBC\x91", "true", "2024-01-31", "$3", "5%"})
    expect_number_refused(numeric(), std::string(text), "expected a finite number", std::string("2.5"));
  expect_number_refused(numeric_or(7), std::string("many"), "'many' in column 'a'", std::string("2.5"));
}

TEST_P(ColumnRules, NumericEmptyNullNanAndMissingWords) {
  const Cell text = std::string("2.5");
  for (const auto& [cell, other] : std::vector<std::pair<Cell, Cell>>{{std::string(), text},
                                                                      {std::string(" \n"), text},
                                                                      {std::string("?"), text},
                                                                      {std::string("nan"), text},
                                                                      {std::string("-NaN"), text},
                                                                      {Null(), 2.5},
                                                                      {kNan, 2.5}}) {
    expect_number(numeric_or(7), cell, 7, other);
    expect_number_refused(numeric(), cell, "no value", other);
  }
}

// A number of data.missing is no value, however the files write it. A column without any other value has none.
TEST_P(ColumnRules, NumbersThatAreMissing) {
  missing_ = {"?", "-999", "1e3", "0.1", "inf"};
  const Cell text = std::string("2.5");
  std::vector<std::pair<Cell, Cell>> cells = {{std::int64_t{-999}, std::int64_t{2}},
                                              {-999.0, 2.5},
                                              {1000.0, 2.5},
                                              {0.1, 2.5},
                                              {kInfinity, 2.5},
                                              {std::string("Infinity"), text},
                                              {std::string("1e39"), text},
                                              {std::string("1e400"), text},
                                              {std::string("-999"), text},
                                              {std::string("-999.0"), text},
                                              {std::string(" 1000 "), text}};
  if (format() != DataFormat::kTfrecord) cells.push_back({1e39, 2.5});
  for (const auto& [cell, other] : cells) {
    expect_number(numeric_or(7), cell, 7, other);
    expect_number_refused(numeric(), cell, "no value", other);
    ColumnSection section = numeric_or(7);
    section.boundaries = {5};
    EXPECT_THAT(read(section, other, cell, other).categories, ElementsAre(0, 1, 0));
    section = numeric_or(1);
    section.normalise = Normalise::kStandard;
    const Given given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_NEAR(given.inputs[2], -std::sqrt(2.0F), 1e-5);
    section = column_section("a", ColumnKind::kWeight);
    section.missing = 3;
    EXPECT_THAT(read(section, other, cell, other).weights, ElementsAre(_, 3, _));
    section = numeric_or(7);
    section.normalise = Normalise::kStandard;
    EXPECT_THAT(read(section, cell, cell, cell).error, HasSubstr("no record of the training set has a value"));
  }
  expect_number(numeric(), -99.0, -99);
  if (!has_lists(format())) return;
  ColumnSection section = numeric_or(-1);
  section.shape = {2};
  EXPECT_THAT(read(section, std::vector<double>{1, 2}, std::vector<double>{-999, 5}, std::vector<double>{1, 2}).inputs,
              ElementsAre(1, 2, 0, -1, 5, 0, 1, 2, 0));
}

// The features that a line leaves out are 0 as if it gave them.
TEST(ColumnRulesOfLibsvm, ZerosThatAreMissing) {
  const Folder folder;
  folder.write("file", "1 1:5\n2 1:0 2:7\n");
  Source source = input::source(DataFormat::kLibsvm, folder, "file");
  ColumnSection features = column_section("features", ColumnKind::kNumeric);
  features.shape = {2};
  features.missing = -1;
  source.columns = {features, column_section("label", ColumnKind::kLabel)};
  source.missing = {"0"};
  const Given given = given_of(load_dataset(source));
  EXPECT_EQ(given.error, "");
  EXPECT_THAT(given.inputs, ElementsAre(5, -1, -1, 7));
}

// The mean and the deviation count a missing value as the number that it becomes.
TEST_P(ColumnRules, NumericMissingIsNormalised) {
  for (const Cell& cell : {Cell(Null()), Cell(kNan)}) {
    ColumnSection section = numeric_or(1);
    section.normalise = Normalise::kStandard;
    const Given given = read(section, 1.0, cell, 4.0);
    ASSERT_EQ(given.error, "");
    EXPECT_NEAR(given.inputs[0], -std::sqrt(0.5F), 1e-6);
    EXPECT_EQ(given.inputs[2], given.inputs[0]);
    EXPECT_NEAR(given.inputs[4], std::sqrt(2.0F), 1e-6);
  }
}

TEST_P(ColumnRules, NumericInfinity) {
  for (ColumnSection section : {numeric(), numeric_or(7)}) {
    for (const double cell : {kInfinity, -kInfinity}) expect_number_refused(section, cell, "in column 'a'");
    expect_number_refused(section, std::string("Infinity"), "in column 'a'", std::string("2.5"));
    if (format() != DataFormat::kTfrecord) expect_number_refused(section, 1e39, "in column 'a'");
    section.normalise = Normalise::kStandard;
    expect_number_refused(section, kInfinity, "in column 'a'");
    section.normalise = Normalise::kNone;
    section.boundaries = {1, 2};
    expect_number_refused(section, kInfinity, "in column 'a'");
  }
}

TEST_P(ColumnRules, NumericOtherTypes) {
  expect_number(numeric(), std::int64_t{-3}, -3, std::int64_t{2});
  expect_number(numeric(), true, 1, false);
  expect_number(numeric(), std::string("\t 1.5 \r\n"), 1.5F, std::string("2.5"));
  if (!has_lists(format())) return;
  const std::vector<double> one = {2.5};
  expect_number(numeric(), std::vector<double>{1.5}, 1.5F, one);
  expect_number_refused(numeric(), std::vector<double>{1, 2}, "2 values", one);
  expect_number_refused(numeric(), std::vector<double>{}, "no value", one);
}

TEST_P(ColumnRules, NumericWithShape) {
  if (!has_lists(format())) return;
  ColumnSection section = numeric();
  section.shape = {2};
  const std::vector<double> other = {1, 2};
  for (const Cell& cell : {Cell(Null()), Cell(std::vector<double>{}), Cell(std::vector<double>{kNan, kNan})}) {
    section.missing = -1;
    const Given given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_THAT(given.inputs, ElementsAre(1, 2, 0, -1, -1, 0, 1, 2, 0));
    section.missing.reset();
    expect_number_refused(section, cell, "no value", other);
  }
  section.missing = -1;
  EXPECT_THAT(read(section, other, std::vector<double>{kNan, 5}, other).inputs,
              ElementsAre(1, 2, 0, -1, 5, 0, 1, 2, 0));
  expect_number_refused(section, std::vector<double>{1, 2, 3}, "3 values", other);
  expect_number_refused(section, std::vector<double>{1}, "1 value", other);
  expect_number_refused(section, std::vector<double>{1, kInfinity}, "infinity", other);
}

// A format that has a text or a number in the place of a list means no value as other formats do.
TEST_P(ColumnRules, NumericWithShapeAndOneValueThatIsNone) {
  if (!has_lists(format())) return;
  missing_ = {"?", "-999"};
  ColumnSection section = numeric();
  section.shape = {2, 2};
  const std::vector<double> other = {1, 2, 3, 4};
  std::vector<Cell> cells = {std::vector<double>{kNan}, std::vector<double>{-999}};
  if (format() != DataFormat::kParquet)  // a column has one type
    cells.insert(cells.end(), {std::string(), std::string(" \n"), std::string("?"), std::string("-nan"), kNan, -999.0,
                               std::int64_t{-999}});
  for (const Cell& cell : cells) {
    section.missing = -7;
    Given given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_THAT(given.inputs, ElementsAre(1, 2, 3, 4, 0, -7, -7, -7, -7, 0, 1, 2, 3, 4, 0));
    section.missing = 2.5;
    section.normalise = Normalise::kStandard;
    given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_THAT(std::span(given.inputs).subspan(5, 4), ElementsAre(0, 0, 0, 0));
    section.missing.reset();
    section.normalise = Normalise::kNone;
    expect_number_refused(section, cell, "no value in column 'a', expected 4 values", other);
  }
  section.missing = -7;
  expect_number_refused(section, std::vector<double>{5}, "1 value in column 'a', expected 4 values", other);
  expect_number_refused(section, std::vector<double>{kInfinity}, "1 value", other);
  expect_number_refused(section, std::vector<double>{kNan, kNan}, "2 values", other);
}

// Columns that have no lists at all, as in a test set.
TEST_P(ColumnRules, NumericWithShapeAndNoList) {
  ColumnSection section = numeric_or(-7);
  section.shape = {2, 2};
  const auto read_all = [&](const Cell& cell) {
    const Record record = {{"a", cell}, {"y", std::int64_t{1}}};
    write_records(format(), folder_ / "file", {record, record});
    Source source = source_of({section, column_section("y", ColumnKind::kLabel)}, std::uint64_t{1} << 30);
    FittedColumns fitted;
    fitted.columns.resize(2);
    source.fitted = std::make_shared<const FittedColumns>(std::move(fitted));
    return given_of(load_dataset(source));
  };
  const std::vector<Cell> cells = {std::string(), std::string("?"), kNan, Null()};
  for (const Cell& cell : cells) {
    const Given given = read_all(cell);
    ASSERT_EQ(given.error, "");
    EXPECT_THAT(given.inputs, ElementsAre(-7, -7, -7, -7, -7, -7, -7, -7));
  }
  EXPECT_THAT(read_all(5.0).error, HasSubstr("1 value in column 'a', expected 4 values"));
  section.missing.reset();
  for (const Cell& cell : cells)
    EXPECT_THAT(read_all(cell).error, HasSubstr("no value in column 'a', expected 4 values"));
}

TEST_P(ColumnRules, Weights) {
  ColumnSection section = column_section("a", ColumnKind::kWeight);
  EXPECT_THAT(read(section, 1.0, 0.0, 2.5).weights, ElementsAre(1, 0, 2.5F));
  expect_refused(read(section, 1.0, -1.0, 1.0), "expected at least 0");
  expect_refused(read(section, 1.0, kInfinity, 1.0), "in column 'a'");
  expect_refused(read(section, std::string("1"), std::string("many"), std::string("1")), "expected a finite number");
  for (const Cell& cell : {Cell(Null()), Cell(kNan)}) {
    section.missing.reset();
    expect_refused(read(section, 1.0, cell, 1.0), "no value");
    section.missing = 3;
    EXPECT_THAT(read(section, 1.0, cell, 1.0).weights, ElementsAre(1, 3, 1));
  }
}

}  // namespace
}  // namespace disttrain::input
