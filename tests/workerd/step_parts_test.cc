#include "workerd/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "common/doubles.h"

namespace disttrain::workerd {
namespace {

using testing::ElementsAre;

// Two trainable variables with a state variable between them, and a dense and a ragged column.
Layout layout() {
  Layout layout;
  for (const char* name : {"w", "mean", "b"}) {
    VariableSpec variable;
    variable.name = name;
    variable.shape = {2};
    if (variable.name == "mean") variable.kind = VariableKind::kState;
    layout.model.variables.push_back(variable);
  }
  layout.model.columns = {{.name = "x", .shape = {3}},
                          {.name = "words", .dtype = DType::kInt32, .shape = {5}, .ragged = true}};
  layout.shards = 1;
  layout.variable_begins = {0, 2, 4};
  layout.buckets = {Bucket{ShardId(0), 0, 0, 6}};
  return layout;
}

struct FiveRecords {
  FiveRecords() : x(15), words(9) {
    std::iota(x.begin(), x.end(), 0.0F);
    std::iota(words.begin(), words.end(), 100);
    columns[0].bytes = std::as_bytes(std::span(x));
    columns[1] = {std::as_bytes(std::span(words)), row_ends};
  }
  Batch batch() const { return {5, columns}; }

  std::vector<float> x;
  std::vector<std::int32_t> words;
  std::vector<std::uint64_t> row_ends{2, 2, 3, 7, 9};
  std::vector<ColumnValues> columns{2};
};

TEST(StepParts, CutsEachColumnIntoPartsThatTogetherAreTheBatch) {
  const FiveRecords records;
  StepParts parts(layout(), 2);
  std::vector<float> parameters(6);
  std::vector<float> gradients(6);
  parts.begin(records.batch(), parameters);
  Batch part = parts.next(parameters, gradients);
  EXPECT_EQ(part.examples, 2U);
  EXPECT_THAT(part.columns[0].as<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(part.columns[1].as<std::int32_t>(), ElementsAre(100, 101));
  EXPECT_THAT(part.columns[1].row_ends, ElementsAre(2, 2));
  EXPECT_FALSE(parts.is_last());
  part = parts.next(parameters, gradients);
  EXPECT_THAT(part.columns[0].as<float>(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(part.columns[1].as<std::int32_t>(), ElementsAre(102, 103, 104, 105, 106));
  EXPECT_THAT(part.columns[1].row_ends, ElementsAre(1, 5));
  EXPECT_EQ(parts.index(), 1U);
  part = parts.next(parameters, gradients);
  EXPECT_EQ(part.examples, 1U);
  EXPECT_THAT(part.columns[0].as<float>(), ElementsAre(12, 13, 14));
  EXPECT_THAT(part.columns[1].as<std::int32_t>(), ElementsAre(107, 108));
  EXPECT_TRUE(parts.is_last());
}

TEST(StepParts, SumsTheGradientsByTheNumbersOfRecordsAndHandsTheStateOn) {
  const FiveRecords records;
  StepParts parts(layout(), 2);
  std::vector<float> parameters{7, 7, 5, 6, 7, 7};  // the state is 5, 6
  std::vector<float> gradients(6);
  for (int step = 0; step < 2; ++step) {  // the second step begins with a new sum, and with the same state
    parts.begin(records.batch(), parameters);
    float state = 5.0F;
    for (const float value : {1.0F, 2.0F, 10.0F}) {
      parts.next(parameters, gradients);
      EXPECT_THAT(parameters, ElementsAre(7, 7, state, state + 1, 7, 7)) << "part " << parts.index();
      parameters[2] = 99;  // as a trainer may do
      state += value;
      gradients = {value, 2 * value, state, state + 1, 3 * value, 4 * value};
      parts.add(parameters, gradients, 0, 3);
      parts.add(parameters, gradients, 3, 6);
    }
    ASSERT_TRUE(parts.is_last());
    const float mean = 0.4F * 1 + 0.4F * 2 + 0.2F * 10;
    EXPECT_THAT(gradients, ElementsAre(testing::FloatEq(mean), testing::FloatEq(2 * mean), 18.0F, 19.0F,
                                       testing::FloatEq(3 * mean), testing::FloatEq(4 * mean)));
    EXPECT_THAT(parameters, ElementsAre(7, 7, 5, 6, 7, 7));
  }
}

// In the last part, answers of the ps may overwrite the parameters as soon as their range is final.
TEST(StepParts, LeavesAStateAloneAfterItsRangeIsFinal) {
  const FiveRecords records;
  StepParts parts(layout(), 3);
  std::vector<float> parameters(6, 1.0F);
  std::vector<float> gradients(6, 2.0F);
  parts.begin(records.batch(), parameters);
  parts.next(parameters, gradients);
  parts.add(parameters, gradients, 0, 6);
  parts.next(parameters, gradients);
  parts.add(parameters, gradients, 0, 4);
  parameters[2] = 9.0F;
  parts.add(parameters, gradients, 4, 6);
  EXPECT_THAT(parameters, ElementsAre(1, 1, 9, 1, 1, 1));
}

TEST(StepParts, ABatchOfOnePartKeepsItsBits) {
  const FiveRecords records;
  StepParts parts(layout(), 5);
  std::vector<float> parameters(6, 0.3F);
  std::vector<float> gradients(6, 0.2F);
  parts.begin(records.batch(), parameters);
  EXPECT_EQ(parts.next(parameters, gradients).examples, 5U);
  EXPECT_TRUE(parts.is_last());
  std::ranges::fill(gradients, 0.1F);
  parts.add(parameters, gradients, 0, 6);
  EXPECT_THAT(gradients, testing::Each(0.1F));
  EXPECT_THAT(parameters, testing::Each(0.3F));
}

TEST(StepParts, GradientsOfDoublesAreAddedInDouble) {
  Layout mixed = layout();
  mixed.model.variables[0].dtype = DType::kFloat64;
  mixed.variable_begins = {0, 4, 6};
  mixed.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(0), 4, 4, 4}};
  const FiveRecords records;
  StepParts parts(mixed, 2);
  std::array<float, 8> parameters{};
  parts.begin(records.batch(), parameters);
  alignas(8) std::array<float, 8> words{};
  const std::span<double> doubles = as_doubles(std::span(words).first(4));
  for (const double value : {0.1, 0.2, 0.7}) {
    parts.next(parameters, words);
    std::ranges::fill(doubles, value);
    std::ranges::fill(std::span(words).subspan(4), static_cast<float>(value));
    parts.add(parameters, words, 0, 4);
    parts.add(parameters, words, 4, 8);
  }
  const double expected = 0.1 * (2.0 / 5) + 0.2 * (2.0 / 5) + 0.7 * (1.0 / 5);
  EXPECT_THAT(std::vector<double>(doubles.begin(), doubles.end()), testing::Each(testing::DoubleEq(expected)));
  EXPECT_FLOAT_EQ(words[4], 0.7F);  // state: the value of the last part
  EXPECT_FLOAT_EQ(words[6], static_cast<float>(expected));
}

TEST(StepParts, AnEmptyBatchHasOneEmptyPart) {
  std::vector<ColumnValues> columns(2);
  StepParts parts(layout(), 5);
  std::vector<float> parameters(6);
  std::vector<float> gradients(6);
  parts.begin(Batch{0, columns}, parameters);
  EXPECT_EQ(parts.next(parameters, gradients).examples, 0U);
  EXPECT_TRUE(parts.is_last());
  parts.add(parameters, gradients, 0, 6);
  EXPECT_THAT(gradients, testing::Each(0.0F));
}

}  // namespace
}  // namespace disttrain::workerd
