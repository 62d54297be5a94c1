// A label with normalise: a step is that of normalised targets, and everything else has the unit of the files.
#include "engine/target_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

constexpr double kMean = 1000.0;
constexpr double kDeviation = 50.0;

// An engine with the same random parameters as each other one of its model.
class Scaled {
 public:
  explicit Scaled(const ModelSection& model)
      : engine_(make_compute_engine(make_torch_model(model, 1).value(), loop_.post())),
        layout_(test::reversed_layout(engine_->describe())),
        parameters_(test::random_floats(element_count(layout_.model), 0.3F, 1)),
        gradients_(parameters_.size()) {
    EXPECT_TRUE(engine_->open(layout_, parameters_, gradients_).has_value());
  }

  Result<EngineOutput> run(Program program, const std::vector<float>& targets) {
    return test::run(*engine_, loop_, program, {targets.size(), inputs_, {}, targets}).output;
  }
  const std::vector<float>& gradients() const { return gradients_; }

 private:
  test::Loop loop_;
  const std::unique_ptr<Engine> engine_;
  const Layout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  const std::vector<float> inputs_ = {0, 1, 1, 0, 1, 1};
};

class TargetScaleTest : public testing::TestWithParam<std::string> {
 protected:
  TargetScaleTest() {
    plain_.builtin = GetParam();
    plain_.loss = Loss::kMse;
    if (GetParam() == "mlp") plain_.layers = {2, 4, 1};
    plain_.matrix_factorization.users = 2;
    plain_.matrix_factorization.items = 2;
    plain_.metrics = {{"mse", "mse"}, {"mae", "mae"}};
    scaled_ = plain_;
    scaled_.target_mean = kMean;
    scaled_.target_deviation = kDeviation;
  }

  ModelSection plain_;
  ModelSection scaled_;
  const std::vector<float> targets_ = {1040, 900, 1010};
};

INSTANTIATE_TEST_SUITE_P(Models, TargetScaleTest, testing::Values("mlp", "matrix_factorization"),
                         [](const testing::TestParamInfo<std::string>& of) { return of.param; });

TEST_P(TargetScaleTest, StepIsThatOfNormalisedTargets) {
  std::vector<float> normalised;
  for (const float target : targets_) normalised.push_back(static_cast<float>((double{target} - kMean) / kDeviation));
  Scaled scaled(scaled_);
  Scaled plain(plain_);
  const auto step = scaled.run(Program::kStep, targets_);
  const auto expected = plain.run(Program::kStep, normalised);
  ASSERT_TRUE(step && expected);
  EXPECT_FLOAT_EQ(static_cast<float>(step->loss_sum), static_cast<float>(expected->loss_sum));
  EXPECT_THAT(scaled.gradients(), testing::Pointwise(testing::FloatNear(1e-6F), plain.gradients()));
}

TEST_P(TargetScaleTest, OutputsLossAndMetricsHaveTheUnitOfTheFiles) {
  Scaled plain(plain_);
  const auto raw = plain.run(Program::kPredict, targets_);
  ASSERT_TRUE(raw);
  std::vector<double> outputs;
  for (const float output : raw->outputs) outputs.push_back(double{output} * kDeviation + kMean);
  double squares = 0.0;
  double absolutes = 0.0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    squares += std::pow(outputs[i] - double{targets_[i]}, 2);
    absolutes += std::fabs(outputs[i] - double{targets_[i]});
  }
  Scaled scaled(scaled_);
  const auto predicted = scaled.run(Program::kPredict, targets_);
  ASSERT_TRUE(predicted);
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(predicted->outputs[i], outputs[i], 1e-3);
  const auto evaluated = scaled.run(Program::kEvaluate, targets_);
  ASSERT_TRUE(evaluated);
  EXPECT_NEAR(evaluated->loss_sum, squares, 1e-3 * squares);
  // {mae sum, weight, mse sum, weight}, in the order of the names
  for (const Program program : {Program::kEvaluate, Program::kStep}) {
    const auto output = scaled.run(program, targets_);
    ASSERT_TRUE(output);
    ASSERT_EQ(output->metrics.size(), 4U);
    EXPECT_NEAR(output->metrics[0], absolutes, 1e-3 * absolutes);
    EXPECT_NEAR(output->metrics[2], squares, 1e-3 * squares);
  }
}

}  // namespace
}  // namespace disttrain::workerd
