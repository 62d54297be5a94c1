// A builtin model with the loss sigmoid_cross_entropy takes labels from 0 to 1, in each format.
#include "input/probability_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/config/columns.h"
#include "tests/input/column_rules_fixture.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ProbabilityLabels : public ColumnRules {
 protected:
  void write(const std::string& name, const std::vector<double>& labels) const {
    std::vector<Record> records;
    for (const double label : labels) records.push_back({{"a", label}, {"key", std::int64_t{0}}});
    write_records(format(), folder_ / name, records);
  }

  Source sigmoid_source(const std::string& files, std::uint64_t memory) const {
    Source source = source_of({label(), numeric("key")}, memory);
    source.files = files;
    source.sigmoid_outputs = 1;
    return source;
  }

  // In memory, and read for each batch. A set of Parquet files is never read into memory.
  static std::vector<std::uint64_t> memories() {
    const std::uint64_t enough = std::uint64_t{1} << 30;
    return format() == DataFormat::kParquet ? std::vector{enough} : std::vector{enough, std::uint64_t{1}};
  }

  static std::string complaint(const std::string& label) {
    return ": the label '" + label +
           "' in column 'a', expected 0 to 1, as model.loss = \"sigmoid_cross_entropy\" needs: if there are two "
           "labels, "
           "list them as the files write them, such as data.columns.a.vocabulary = [\"-1\", \"+1\"], to make them 0 "
           "and "
           "1; otherwise choose another model.loss";
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ProbabilityLabels, testing::ValuesIn(formats_of_columns()),
                         [](const testing::TestParamInfo<DataFormat>& of) { return name_of(of.param); });

TEST_P(ProbabilityLabels, OtherNumbersAreRefused) {
  for (const std::uint64_t memory : memories())
    for (const auto& [number, text] : {std::pair{-1.0, "-1"}, {2.0, "2"}, {1.5, "1.5"}, {-0.25, "-0.25"}}) {
      write("file", {1, number, 0});
      const auto loaded = load_dataset(sigmoid_source("file", memory));
      ASSERT_FALSE(loaded) << "the first pass finds it";
      EXPECT_EQ(loaded.error().code, ErrorCode::kData);
      EXPECT_THAT(loaded.error().message, HasSubstr(complaint(text)));
      EXPECT_THAT(loaded.error().message, testing::ContainsRegex("(file:3|file\", record 1)"));
    }
}

TEST_P(ProbabilityLabels, TheTestSetIsCheckedToo) {
  for (const std::uint64_t memory : memories())
    for (const std::vector<double>& training_labels : {std::vector<double>{0, 1, 1}, {0, 0.5, 1}}) {
      write("file", training_labels);
      write("test", {1, -1, 0});
      const auto training = load_dataset(sigmoid_source("file", memory));
      ASSERT_TRUE(training) << training.error().message;
      Source test = sigmoid_source("test", memory);
      test.fitted = (*training)->fitted_columns();
      const std::string error = given_of(load_dataset(test)).error;
      EXPECT_THAT(error, HasSubstr(complaint("-1")));
      EXPECT_THAT(error, testing::ContainsRegex("(test:3|test\", record 1)"));
    }
}

TEST_P(ProbabilityLabels, ClassesAndSoftTargetsAreTaken) {
  for (const std::uint64_t memory : memories()) {
    write("file", {0, 1, 1});
    EXPECT_THAT(given_of(load_dataset(sigmoid_source("file", memory))).classes, ElementsAre(0, 1, 1));
    write("file", {0, 0.25, 1});
    EXPECT_THAT(given_of(load_dataset(sigmoid_source("file", memory))).targets, ElementsAre(0, 0.25F, 1));
  }
}

TEST_P(ProbabilityLabels, VocabularyMakesClassesOfOtherNumbers) {
  write("file", {-1, 1, 1});
  for (const std::uint64_t memory : memories()) {
    Source source = sigmoid_source("file", memory);
    source.columns[0].vocabulary = {"-1", "1"};
    EXPECT_THAT(given_of(load_dataset(source)).classes, ElementsAre(0, 1, 1));
  }
}

TEST_P(ProbabilityLabels, OtherModelsTakeAllNumbers) {
  write("file", {3, -1, 2});
  for (const std::uint64_t memory : memories())
    for (const std::uint64_t outputs : {0U, 3U}) {
      Source source = sigmoid_source("file", memory);
      source.sigmoid_outputs = outputs;
      EXPECT_THAT(given_of(load_dataset(source)).classes, ElementsAre(3, -1, 2));
    }
}

// The labels of many binary sets in this format are -1 and +1.
TEST(ProbabilityLabelsOfLibsvm, AreClassesWithAVocabulary) {
  const Folder folder;
  folder.write("a.svm", "+1 1:1\n-1 2:1\n+1 1:1\n");
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{1}}) {
    Source source = input::source(DataFormat::kLibsvm, folder, "a.svm");
    source.columns = {column_section("features", ColumnKind::kNumeric), column_section("label", ColumnKind::kLabel)};
    source.columns[0].shape = {2};
    source.memory = memory;
    source.sigmoid_outputs = 1;
    expect_error(source, ErrorCode::kData,
                 {"the label '-1' in column 'label'", "data.columns.label.vocabulary = [\"-1\", \"+1\"]"});
    source.columns[1].vocabulary = {"-1", "+1"};
    EXPECT_THAT(given_of(load_dataset(source)).classes, ElementsAre(1, 0, 1));
  }
}

class ProbabilityLabelsOfArrays : public testing::Test {
 protected:
  ProbabilityLabelsOfArrays() {
    for (const std::string name : {"x1.npy", "x2.npy"}) folder_.write(name, npy<float>("<f4", "(3, 1)", {1, 2, 3}));
    folder_.write("y1.npy", npy<float>("<f4", "(3,)", {0, 0.5F, 1}));
  }

  Source source_of(std::uint64_t outputs) const {
    Source source = input::source(DataFormat::kNpy, folder_, "x?.npy", "y?.npy");
    source.labels_as = DType::kFloat32;
    source.sigmoid_outputs = outputs;
    return source;
  }

  Folder folder_;
};

TEST_F(ProbabilityLabelsOfArrays, AreNumbersOfEachType) {
  const std::string file = folder_ / "y2.npy";
  const std::vector<std::string> bad = {npy<float>("<f4", "(3,)", {1, -1, 2}), npy<double>("<f8", "(3,)", {1, -1, 2}),
                                        npy<std::int8_t>("|i1", "(3,)", {1, -1, 2}),
                                        npy<std::int64_t>("<i8", "(3,)", {1, -1, 2})};
  for (const std::string& labels : bad) {
    folder_.write("y2.npy", labels);
    expect_error(source_of(1), ErrorCode::kData,
                 {file + ": value 0 of record 1 is the label -1, expected 0 to 1, as model.loss = "
                         "\"sigmoid_cross_entropy\" needs: if there are two labels, write them as 0 and 1; otherwise "
                         "choose another model.loss"});
    EXPECT_NE(load(source_of(0)), nullptr) << "another loss";
  }
  folder_.write("y2.npy", npy<float>("<f4", "(3,)", {1, 0, 0.25F}));
  EXPECT_NE(load(source_of(1)), nullptr);
}

TEST_F(ProbabilityLabelsOfArrays, AreClassesOfTwo) {
  folder_.write("y1.npy", npy<std::int64_t>("<i8", "(3,)", {0, 1, 1}));
  folder_.write("y2.npy", npy<std::int64_t>("<i8", "(3,)", {1, 0, 2}));
  expect_error(source_of(1), ErrorCode::kData, {folder_ / "y2.npy: value 0 of record 2 is the label 2"});
  Source first = source_of(1);
  first.end = 5;
  EXPECT_EQ(load(first)->records(), 5U) << "only the records of the set count";
  EXPECT_NE(load(source_of(3)), nullptr) << "classes of three outputs";
}

TEST_F(ProbabilityLabelsOfArrays, MayBeSeveralForEachRecord) {
  folder_.write("y1.npy", npy<float>("<f4", "(3, 2)", {0, 1, 0.5F, 0.5F, 1, 0}));
  folder_.write("y2.npy", npy<float>("<f4", "(3, 2)", {0, 1, 0.5F, 7, 1, 0}));
  expect_error(source_of(2), ErrorCode::kData, {folder_ / "y2.npy: value 1 of record 1 is the label 7"});
  EXPECT_NE(load(source_of(3)), nullptr) << "fits() names another number of outputs";
}

// ---- the models ----

TEST(SigmoidOutputs, AreThoseOfBuiltinModelsOfThisLoss) {
  ModelSection model;
  model.loss = Loss::kSigmoidCrossEntropy;
  EXPECT_EQ(sigmoid_outputs(model), 0U) << "a program or a trainer has its own loss";
  model.builtin = "mlp";
  model.layers = {4, 3};
  EXPECT_EQ(sigmoid_outputs(model), 3U);
  model.builtin = "linear";
  model.layers = {4, 1};
  EXPECT_EQ(sigmoid_outputs(model), 1U);
  model.builtin = "wide_deep";
  model.wide_deep.outputs = 1;
  EXPECT_EQ(sigmoid_outputs(model), 1U);
  model.builtin = "cnn";
  EXPECT_EQ(sigmoid_outputs(model), 10U);
  model.loss = Loss::kMse;
  EXPECT_EQ(sigmoid_outputs(model), 0U);
}

}  // namespace
}  // namespace disttrain::input
