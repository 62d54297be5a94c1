// The values that a column of labels takes, and the errors of all others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "input/fits.h"
#include "tests/input/column_rules_fixture.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST_P(ColumnRules, LabelsThatAreWords) {
  EXPECT_THAT(read(label(), std::string("b"), std::string(" a\r\n"), std::string("b")).classes, ElementsAre(1, 0, 1));
  EXPECT_THAT(read(label({"b", "10"}), std::string("10"), std::string("b\n"), std::string("10 ")).classes,
              ElementsAre(1, 0, 1));
  expect_refused(read(label({"b", "10"}), std::string("10"), std::string("c"), std::string("10")), "isn't one of");
  if (format() != DataFormat::kJsonl)
    expect_refused(read(label(), std::string("a"), std::string("\xFC"), std::string("a")), "isn't UTF-8");
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
      // A one-hot row has no element for an ignored label.
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

}  // namespace
}  // namespace disttrain::input
