// Holds the table of docs/data.md, "What becomes of a value": the same records, written in each format, give the same
// batches or the same error, whether they are read into memory or for each batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "tests/workerd/input/all_formats.h"
#include "workerd/input/columns.h"
#include "workerd/input/fits.h"
#include "workerd/input/parquet/parquet_functions.h"

namespace disttrain::input {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kCell = 1;  // the record with the value of a test

ColumnSection numeric(const std::string& name = "a") {
  return column_section(name, ColumnKind::kNumeric);
}
ColumnSection numeric_or(double missing) {
  ColumnSection section = numeric();
  section.missing = missing;
  return section;
}
ColumnSection category(const std::vector<std::string>& vocabulary = {}) {
  ColumnSection section = column_section("a", ColumnKind::kCategory);
  section.vocabulary = vocabulary;
  return section;
}
ColumnSection hashed() {
  ColumnSection section = category();
  section.hash = 1000;
  return section;
}
ColumnSection label(const std::vector<std::string>& vocabulary = {}) {
  ColumnSection section = column_section("a", ColumnKind::kLabel);
  section.vocabulary = vocabulary;
  return section;
}
ColumnSection bytes(std::uint32_t length, std::uint32_t limit = 0) {
  ColumnSection section = column_section("a", ColumnKind::kBytes);
  section.length = length;
  section.limit = limit;
  section.truncate = Truncate::kNone;
  return section;
}
ColumnSection tokens() {
  ColumnSection section = column_section("a", ColumnKind::kTokens);
  section.limit = 100;
  section.length = 3;
  section.truncate = Truncate::kNone;
  return section;
}

// Three records with a column "a", the second of which has the value of the test.
class ColumnRules : public testing::TestWithParam<DataFormat> {
 protected:
  static DataFormat format() { return GetParam(); }

  Source source_of(const std::vector<ColumnSection>& columns, std::uint64_t memory) const {
    Source source = input::source(format(), folder_, "file");
    source.columns = columns;
    source.missing = missing_;
    source.memory = memory;
    source.parquet = &parquet_functions();
    return source;
  }

  // What the records give. An error is the same with and without memory, except that one found later can't name the
  // line.
  Given read(const ColumnSection& section, const std::vector<Record>& records) {
    std::vector<ColumnSection> columns = {section};
    write_records(format(), folder_ / "file", records);
    columns.push_back(numeric("key"));
    if (section.kind != ColumnKind::kLabel) columns.push_back(column_section("y", ColumnKind::kLabel));
    Given given = given_of(load_dataset(source_of(columns, std::uint64_t{1} << 30)));
    if (format() == DataFormat::kParquet) return given;  // is never read into memory
    const Given streamed = given_of(load_dataset(source_of(columns, 1)));
    EXPECT_EQ(streamed.error.empty(), given.error.empty()) << streamed.error << given.error;
    EXPECT_EQ(streamed.inputs, given.inputs);
    EXPECT_EQ(streamed.categories, given.categories);
    EXPECT_EQ(streamed.classes, given.classes);
    EXPECT_EQ(streamed.targets, given.targets);
    EXPECT_EQ(streamed.weights, given.weights);
    EXPECT_EQ(streamed.tokens, given.tokens);
    return given;
  }
  Given read(const ColumnSection& section, const Cell& before, const Cell& cell, const Cell& after) {
    const auto record = [](const Cell& value) {
      return Record{{"a", value}, {"key", std::int64_t{0}}, {"y", std::int64_t{1}}};
    };
    return read(section, {record(before), record(cell), record(after)});
  }

  // The error names the file, the record or its line, and the column, and says `what`.
  void expect_refused(const Given& given, const std::string& what) const {
    SCOPED_TRACE(given.error);
    EXPECT_THAT(given.error, HasSubstr("file"));
    EXPECT_THAT(given.error, HasSubstr("column 'a'"));
    EXPECT_THAT(given.error, HasSubstr(what));
    EXPECT_THAT(given.error, testing::ContainsRegex("(file:3|file\", record 1)"));
  }

  void expect_number(const ColumnSection& section, const Cell& cell, float expected, const Cell& other = 2.5) {
    const Given given = read(section, other, cell, other);
    ASSERT_EQ(given.error, "");
    EXPECT_EQ(given.inputs[2 * kCell], expected);
  }
  void expect_number_refused(const ColumnSection& section, const Cell& cell, const std::string& what,
                             const Cell& other = 2.5) {
    expect_refused(read(section, other, cell, other), what);
  }
  // The category of the cell is that of the word, and another one than that of "other".
  void expect_word(const Cell& cell, const std::string& word, const Cell& other = std::string("other")) {
    for (const ColumnSection& section : {category(), category({"other", word}), hashed()}) {
      const Given given = read(section, other, cell, std::string(word));
      ASSERT_EQ(given.error, "") << plain_text(cell);
      EXPECT_EQ(given.categories[kCell], given.categories[2]) << plain_text(cell);
      EXPECT_NE(given.categories[kCell], given.categories[0]) << plain_text(cell);
    }
  }

  Folder folder_;
  std::vector<std::string> missing_ = {"?"};
};

INSTANTIATE_TEST_SUITE_P(Formats, ColumnRules, testing::ValuesIn(formats_of_columns()),
                         [](const testing::TestParamInfo<DataFormat>& of) { return name_of(of.param); });

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

TEST_P(ColumnRules, ErrorNamesDataMissingIfItHasTheLabel) {
  missing_ = {"0", "x."};
  ColumnSection section = column_section("a", ColumnKind::kLabel);
  const std::string zero =
      "no label in column 'a', because data.missing has its text '0', expected another word or number";
  expect_refused(read(section, std::int64_t{1}, std::int64_t{0}, std::int64_t{1}), zero);
  section.vocabulary = {"0", "1"};
  expect_refused(read(section, std::int64_t{1}, std::int64_t{0}, std::int64_t{1}), zero);
  section = column_section("a", ColumnKind::kLabel);
  section.strip = ".";
  expect_refused(read(section, std::string("1"), std::string("0."), std::string("1")), "data.missing has its text '0'");
  expect_refused(read(section, std::string("y"), std::string("x."), std::string("y")),
                 "data.missing has its text 'x.'");
  expect_refused(read(section, std::string("y"), std::string("."), std::string("y")),
                 "no label in column 'a', expected a word or a number: correct the record");
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

// A number is the shortest text that gives it. A column of a Parquet file has one type, so its other values are
// numbers.
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

TEST_P(ColumnRules, LabelsThatAreNumbers) {
  EXPECT_THAT(read(label(), std::int64_t{2}, std::int64_t{10}, std::int64_t{0}).classes, ElementsAre(2, 10, 0));
  EXPECT_THAT(read(label(), std::string("2"), std::string("10\n"), std::string(" +1 ")).classes, ElementsAre(2, 10, 1));
  EXPECT_THAT(read(label(), std::int64_t{3}, std::int64_t{-100}, std::int64_t{255}).classes, ElementsAre(3, -100, 255));
  EXPECT_THAT(read(label(), 0.5, -1.0, 2.0).targets, ElementsAre(0.5F, -1, 2));
  EXPECT_THAT(read(label(), false, true, false).classes, ElementsAre(0, 1, 0));
}

// A larger one would become another class.
TEST_P(ColumnRules, WholeLabelsAreBelow2To53) {
  const std::int64_t most = (std::int64_t{1} << 53) - 1;
  EXPECT_THAT(read(label(), std::int64_t{3}, most, std::int64_t{0}).classes, ElementsAre(3, most, 0));
  for (const std::int64_t more : {most + 1, most + 2, -most - 2})
    EXPECT_THAT(read(label(), std::int64_t{3}, more, std::int64_t{0}).classes, ElementsAre()) << more;
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

TEST_P(ColumnRules, LabelsThatAreWords) {
  EXPECT_THAT(read(label(), std::string("b"), std::string(" a\r\n"), std::string("b")).classes, ElementsAre(1, 0, 1));
  EXPECT_THAT(read(label({"b", "10"}), std::string("10"), std::string("b\n"), std::string("10 ")).classes,
              ElementsAre(1, 0, 1));
  expect_refused(read(label({"b", "10"}), std::string("10"), std::string("c"), std::string("10")), "isn't one of");
  if (format() != DataFormat::kJsonl)
    expect_refused(read(label(), std::string("a"), std::string("\xFC"), std::string("a")), "isn't UTF-8");
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

TEST_P(ColumnRules, LabelEmptyNullNanAndMissingWords) {
  const Cell word = std::string("2");
  for (const auto& [cell, other] : std::vector<std::pair<Cell, Cell>>{{std::string(), word},
                                                                      {std::string("\n"), word},
                                                                      {std::string("?"), word},
                                                                      {std::string("NaN"), word},
                                                                      {Null(), std::int64_t{2}},
                                                                      {kNan, 2.0}})
    for (const ColumnSection& section : {label(), label({"2"})}) expect_refused(read(section, other, cell, other), "");
}

TEST_P(ColumnRules, LabelInfinity) {
  for (const double cell : {kInfinity, -kInfinity}) expect_refused(read(label(), 2.0, cell, 2.0), "infinite");
  expect_refused(read(label(), std::string("2"), std::string("inf"), std::string("2")), "infinite");
}

TEST_P(ColumnRules, LabelsOfNumbersAndWordsAreRefused) {
  for (const char* text : {"n/a", "2.5x", "2;5", "2,5", "0x10"})
    expect_refused(read(label(), std::string("2"), std::string(text), std::string("3")), "isn't a number, expected");
  expect_refused(read(label(), std::string("cat"), std::string("3"), std::string("cat")),
                 "is a number, expected a word");
}

// The training set of a regression may happen to have whole numbers only.
TEST_P(ColumnRules, TestSetOfARegressionMayHaveAnyNumbers) {
  const auto write = [this](const std::string& name, const std::vector<double>& labels) {
    std::vector<Record> records;
    for (const double label : labels) records.push_back({{"a", label}, {"key", std::int64_t{0}}});
    write_records(format(), folder_ / name, records);
  };
  write("file", {0, 1, 2, 3});
  write("fractions", {3, 0.5, -1});
  write("below", {3, -1});
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    if (format() == DataFormat::kParquet && memory == 1) continue;
    Source regression = source_of({label(), numeric("key")}, memory);
    regression.target_taker = "model.loss = \"mse\"";
    const auto training = load_dataset(regression);
    ASSERT_TRUE(training) << training.error().message;
    EXPECT_THAT(given_of(training).targets, ElementsAre(0, 1, 2, 3));
    regression.fitted = (*training)->fitted_columns();
    Source classes = regression;
    classes.target_taker.clear();
    const auto given = [](Source source, const std::string& files) {
      source.files = files;
      return given_of(load_dataset(source));
    };
    EXPECT_EQ(given(regression, "fractions").error, "");
    EXPECT_THAT(given(regression, "fractions").targets, ElementsAre(3, 0.5F, -1));
    EXPECT_THAT(given(regression, "below").targets, ElementsAre(3, -1));
    EXPECT_THAT(given(classes, "file").classes, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(given(classes, "fractions").error, HasSubstr("isn't a whole number as those of the training set"));
    EXPECT_THAT(given(classes, "below").error, HasSubstr("isn't a class, a whole number of at least 0"));
  }
}

// A model of one output with the loss mse takes no classes.
TEST_P(ColumnRules, WordsForALossOfNumbersAreRefused) {
  write_records(format(), folder_ / "file", {{{"a", std::string("cat")}, {"key", std::int64_t{0}}}});
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    Source source = source_of({label(), numeric("key")}, memory);
    source.target_taker = "model.loss = \"mse\"";
    if (format() == DataFormat::kParquet && memory == 1) continue;
    const std::string error = given_of(load_dataset(source)).error;
    EXPECT_THAT(error, HasSubstr("the label 'cat' in column 'a' isn't a number, which model.loss = \"mse\" needs"));
    EXPECT_THAT(error, testing::ContainsRegex("(file:2|file\", record 0)"));
  }
}

TEST_P(ColumnRules, LabelsOfSeveralFilesAreNumbersOrWords) {
  write_records(format(), folder_ / "file0", {{{"a", std::int64_t{1}}, {"key", std::int64_t{0}}}});
  write_records(format(), folder_ / "file1", {{{"a", std::string("n/a")}, {"key", std::int64_t{0}}}});
  Source source = source_of({label(), numeric("key")}, std::uint64_t{1} << 30);
  source.files = "file?";
  const std::string error = given_of(load_dataset(source)).error;
  EXPECT_THAT(error, HasSubstr("the label 'n/a' in column 'a' isn't a number, expected a number as '1' at"));
  EXPECT_THAT(error, testing::ContainsRegex("file1(:2|\", record 0)"));
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

// CrossEntropyLoss(ignore_index=...) of PyTorch leaves these labels out.
TEST_P(ColumnRules, IgnoredLabelsReachPrograms) {
  for (const std::int64_t ignored : {-100, 255}) {
    write_records(format(), folder_ / "file",
                  {{{"a", std::int64_t{2}}, {"key", std::int64_t{0}}}, {{"a", ignored}, {"key", std::int64_t{0}}}});
    for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
      if (format() == DataFormat::kParquet && memory == 1) continue;
      const Source source = source_of({numeric("key"), label()}, memory);
      const auto dataset = load_dataset(source);
      ASSERT_TRUE(dataset) << dataset.error().message;
      ModelSpec model;
      model.columns = {{.name = "inputs", .dtype = DType::kFloat32, .shape = {1}},
                       {.name = "labels", .dtype = DType::kInt64, .shape = {}, .limit = 3, .ignored = ignored}};
      const Status fit = fits(**dataset, model, ModelSection(), source);
      EXPECT_TRUE(fit) << fit.error().message;
      std::vector<std::int64_t> labels(2);
      const std::vector<std::uint64_t> indices = {0, 1};
      const std::vector<ColumnOut> outs = {{model.columns[1], std::as_writable_bytes(std::span(labels)), {1, 0}}};
      const Status gathered = (*dataset)->gather(indices, outs, {});
      EXPECT_TRUE(gathered) << gathered.error().message;
      EXPECT_THAT(labels, ElementsAre(2, ignored));
      model.columns[1].ignored = 7;
      EXPECT_FALSE(fits(**dataset, model, ModelSection(), source));
      // As a 1 among zeros it would have no place.
      const ColumnSpec one_hot{.name = "labels", .dtype = DType::kFloat32, .shape = {3}, .ignored = ignored};
      model.columns[1] = one_hot;
      EXPECT_FALSE(fits(**dataset, model, ModelSection(), source));
      if (memory > 1) continue;
      std::vector<float> zeros_and_ones(6);
      const auto bytes_out = std::as_writable_bytes(std::span(zeros_and_ones));
      const std::vector<ColumnOut> as_one_hot = {{one_hot, bytes_out, {1, 0}}};
      EXPECT_FALSE((*dataset)->gather(indices, as_one_hot, {}));
    }
  }
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
