// Step programs whose variables are float64. The model is LinearNet64 of tests/data/program/make.py: an example's
// output is scale * (x . weight) + bias, and the loss is the mean of the squared errors. So all results are known in
// closed form. The tolerances are far below what float32 can tell apart.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/doubles.h"
#include "engine/program/program.h"
#include "tests/common/program/packages.h"
#include "tests/engine/program/reason_to_skip.h"

namespace disttrain::workerd {
namespace {

constexpr double kTolerance = 1e-12;
constexpr double kScale = 1.0 / 3;  // frozen

// The layout: "seen", "weight", "bias". The doubles come first.
constexpr std::size_t kSeen = 0;    // as double
constexpr std::size_t kWeight = 2;  // as double
constexpr std::size_t kBias = 8;    // as float
constexpr std::size_t kWords = 9;

Layout layout_with_doubles(const ModelSpec& model) {
  Layout layout;
  layout.model = model;
  layout.shards = 1;
  layout.variable_begins = {2 * kWeight, kBias, 2 * kSeen};
  layout.buckets = {Bucket{ShardId(0), 0, 0, kBias}, Bucket{ShardId(0), kBias, kBias, 1}};
  return layout;
}

struct Records {
  std::vector<double> inputs;  // two for each record
  std::vector<double> labels;
  std::vector<ColumnValues> columns;

  Batch batch() {
    columns = {ColumnValues{std::as_bytes(std::span(inputs)), {}}, ColumnValues{std::as_bytes(std::span(labels)), {}}};
    return {labels.size(), columns};
  }
};

Records some_records() {
  Records records;
  for (int i = 0; i < 5; ++i) {
    records.inputs.insert(records.inputs.end(), {std::sin(i + 1), std::cos(i)});
    records.labels.push_back(i / 7.0);
  }
  return records;
}

class Float64ProgramTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = test::reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
    auto made = make_program(program::test::made(std::string("float64.") + GetParam()), 1);
    ASSERT_TRUE(made) << made.error().message;
    program_ = std::move(*made);
    const Layout layout = layout_with_doubles(program_->describe());
    const Status valid = validate(layout);
    ASSERT_TRUE(valid) << valid.error().message;
    ASSERT_TRUE(program_->open(layout, parameters_, gradients_));
    const Result<std::vector<float>> values = program_->initial_values();
    ASSERT_TRUE(values) << values.error().message;
    ASSERT_EQ(values->size(), parameters_.size());
    std::ranges::copy(*values, parameters_.begin());
  }

  static std::span<double> doubles(std::vector<float>& words) { return as_doubles(std::span(words).first(kBias)); }
  double output_of(const Records& records, std::size_t i) {
    const std::span<const double> values = doubles(parameters_);
    const double product = records.inputs[2 * i] * values[kWeight] + records.inputs[2 * i + 1] * values[kWeight + 1];
    return kScale * product + static_cast<double>(parameters_[kBias]);
  }
  double error_of(const Records& records, std::size_t i) { return output_of(records, i) - records.labels[i]; }
  double loss_sum_of(const Records& records) {
    double sum = 0.0;
    for (std::size_t i = 0; i < records.labels.size(); ++i) sum += error_of(records, i) * error_of(records, i);
    return sum;
  }
  void expect_loss(const Records& records, const Result<EngineOutput>& output) {
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_NEAR(output->loss_sum, loss_sum_of(records), kTolerance);
    ASSERT_EQ(output->metrics.size(), 2U);
    EXPECT_NEAR(output->metrics[0], loss_sum_of(records), kTolerance);
    EXPECT_EQ(output->metrics[1], 5.0);
  }

  std::unique_ptr<Computation> program_;
  std::vector<float> parameters_ = std::vector<float>(kWords);
  std::vector<float> gradients_ = std::vector<float>(kWords, NAN);
};

INSTANTIATE_TEST_SUITE_P(Kinds, Float64ProgramTest, testing::Values("pt2", "pt"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(Float64ProgramTest, BeginsWithTheValuesOfThePackage) {
  const std::vector<VariableSpec>& variables = program_->describe().variables;
  ASSERT_EQ(variables.size(), 3U);
  EXPECT_EQ(variables[0].dtype, DType::kFloat64);
  EXPECT_EQ(variables[1].dtype, DType::kFloat32);
  EXPECT_EQ(variables[2].dtype, DType::kFloat64);
  EXPECT_EQ(variables[2].kind, VariableKind::kState);
  const std::span<const double> values = doubles(parameters_);
  EXPECT_EQ(values[kWeight], 1.0 / 7);
  EXPECT_EQ(values[kWeight + 1], -2.0 / 7);
  EXPECT_EQ(values[kSeen], 0.1);
  EXPECT_EQ(values[kSeen + 1], 0.1);
  EXPECT_EQ(parameters_[kBias], 0.0F);
}

TEST_P(Float64ProgramTest, StepAndEvaluationGiveTheClosedForm) {
  Records records = some_records();
  // Results of float32 would be the same with and without this change.
  doubles(parameters_)[kWeight] += 1e-9;
  parameters_[kBias] = 0.3F;
  expect_loss(records, program_->step(records.batch(), {}, {}));

  const std::size_t n = records.labels.size();
  const std::span<const double> found = doubles(gradients_);
  const std::span<const double> old = doubles(parameters_);
  for (std::size_t column = 0; column < 2; ++column) {
    double gradient = 0.0;
    double mean = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      gradient += 2.0 / 5 * error_of(records, i) * kScale * records.inputs[2 * i + column];
      mean += records.inputs[2 * i + column] / 5;
    }
    EXPECT_NEAR(found[kWeight + column], gradient, kTolerance);
    EXPECT_NEAR(found[kSeen + column], 0.9 * old[kSeen + column] + 0.1 * mean, kTolerance);
  }
  double of_bias = 0.0;
  for (std::size_t i = 0; i < n; ++i) of_bias += 2.0 / 5 * error_of(records, i);
  EXPECT_FLOAT_EQ(gradients_[kBias], static_cast<float>(of_bias));

  expect_loss(records, program_->evaluate(records.batch()));
}

// Predictions are float32, but they are computed in float64: the two products of each record nearly cancel out.
TEST_P(Float64ProgramTest, PredictionIsRoundedOnlyAtTheEnd) {
  Records records;
  for (int i = 0; i < 5; ++i) {
    records.inputs.insert(records.inputs.end(), {2.0 + (i + 1) * 1e-10, 1.0});
    records.labels.push_back(0.0);
  }
  const Result<EngineOutput> output = program_->predict(records.batch());
  ASSERT_TRUE(output) << output.error().message;
  ASSERT_EQ(output->outputs.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(output_of(records, i), static_cast<double>(i + 1) * 1e-10 / 21, 1e-16);
    EXPECT_NEAR(static_cast<double>(output->outputs[i]), output_of(records, i), 1e-16);
  }
}

}  // namespace
}  // namespace disttrain::workerd
