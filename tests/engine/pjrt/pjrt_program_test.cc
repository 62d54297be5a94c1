// Computes a small model by the CPU plugin, and compares with a reference. The model is a linear one: an example's
// output is scale * (x . w), and the loss is the mean of the squared errors. `scale` is frozen. The state variable
// `seen` counts examples. The gradient of `noise` is the seed that the step got.
#include "engine/pjrt/pjrt_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/pjrt/cpu_plugin.h"

namespace disttrain::workerd::pjrt {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr std::uint64_t kFeatures = 3;

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// N stands for the batch's size.
const char* const kInputs =
    "%w: tensor<3xf32>, %seen: tensor<f32>, %noise: tensor<2xf32>, %scale: tensor<f32>, %x: tensor<Nx3xf32>, "
    "%y: tensor<Nxi32>";
const char* const kForward = R"(
    %product = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<Nx3xf32>, tensor<3xf32>) -> tensor<Nxf32>
    %scales = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<Nxf32>
    %output = stablehlo.multiply %product, %scales : tensor<Nxf32>
)";
const char* const kLoss = R"(
    %target = stablehlo.convert %y : (tensor<Nxi32>) -> tensor<Nxf32>
    %error = stablehlo.subtract %output, %target : tensor<Nxf32>
    %square = stablehlo.multiply %error, %error : tensor<Nxf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %count = stablehlo.constant dense<N.0> : tensor<f32>
    %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<Nxf32>, tensor<f32>) -> tensor<f32>
    %loss = stablehlo.divide %sum, %count : tensor<f32>
    %sum1 = stablehlo.reshape %sum : (tensor<f32>) -> tensor<1xf32>
    %count1 = stablehlo.reshape %count : (tensor<f32>) -> tensor<1xf32>
    %metrics = stablehlo.concatenate %sum1, %count1, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
)";
const char* const kGradients = R"(
    %errors_of_features = stablehlo.dot_general %x, %error, contracting_dims = [0] x [0] : (tensor<Nx3xf32>, tensor<Nxf32>) -> tensor<3xf32>
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %double = stablehlo.multiply %two, %scale : tensor<f32>
    %factor = stablehlo.divide %double, %count : tensor<f32>
    %factors = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %gradient = stablehlo.multiply %errors_of_features, %factors : tensor<3xf32>
    %seen_now = stablehlo.add %seen, %count : tensor<f32>
    %seeds = stablehlo.convert %seed : (tensor<2xui32>) -> tensor<2xf32>
)";

std::string module_of(const std::string& inputs, const std::string& outputs, const std::string& body,
                      std::uint64_t batch) {
  const std::string text =
      "module {\nfunc.func public @main(" + inputs + ") -> (" + outputs + ") {\n" + body + "\n}\n}\n";
  // "Nx" and "N.0" occur in types and in the count only.
  return replace_all(replace_all(text, "<Nx", "<" + std::to_string(batch) + "x"), "<N.0>",
                     "<" + std::to_string(batch) + ".0>");
}

std::string step_code(std::uint64_t batch) {
  return module_of(std::string(kInputs) + ", %seed: tensor<2xui32>",
                   "tensor<f32>, tensor<2xf32>, tensor<3xf32>, tensor<f32>, tensor<2xf32>",
                   std::string(kForward) + kLoss + kGradients +
                       "return %loss, %metrics, %gradient, %seen_now, %seeds : tensor<f32>, tensor<2xf32>, "
                       "tensor<3xf32>, tensor<f32>, tensor<2xf32>",
                   batch);
}

std::string evaluate_code(std::uint64_t batch) {
  return module_of(kInputs, "tensor<f32>, tensor<2xf32>",
                   std::string(kForward) + kLoss + "return %loss, %metrics : tensor<f32>, tensor<2xf32>", batch);
}

std::string predict_code(std::uint64_t batch) {
  return module_of(kInputs, "tensor<Nxf32>", std::string(kForward) + "return %output : tensor<Nxf32>", batch);
}

class Source final : public StableHloSource {
 public:
  Result<std::string> code(const StableHloProgram& program) override {
    const auto found = std::find(programs.begin(), programs.end(), program);
    return codes[static_cast<std::size_t>(found - programs.begin())];
  }
  Result<std::vector<float>> initial_values(const Layout& layout) override {
    std::vector<float> values(6);
    values[layout.variable_begins[0]] = 0.1F;
    values[layout.variable_begins[0] + 1] = -0.2F;
    values[layout.variable_begins[0] + 2] = 0.3F;
    return values;
  }

  std::vector<StableHloProgram> programs;
  std::vector<std::string> codes;  // of `programs`
};

std::string& code_of(StableHloModel& model, std::size_t program) {
  return static_cast<Source&>(*model.source).codes[program];
}

constexpr float kScale = 0.5F;

StableHloModel linear_model(const std::vector<std::uint64_t>& sizes) {
  StableHloModel model;
  VariableSpec w;
  w.name = "w";
  w.shape = {kFeatures};
  VariableSpec seen;
  seen.name = "seen";
  seen.kind = VariableKind::kState;
  VariableSpec noise;
  noise.name = "noise";
  noise.shape = {2};
  model.spec.variables = {w, seen, noise};
  model.spec.columns = {{.name = "x", .dtype = DType::kFloat32, .shape = {kFeatures}},
                        {.name = "y", .dtype = DType::kInt32, .shape = {}}};
  model.spec.metrics = {{.name = "error", .kind = MetricKind::kMse}};
  model.spec.programs = {.evaluates = true, .predicts = true};
  model.spec.brings_values = true;
  const auto* const scale = reinterpret_cast<const std::byte*>(&kScale);
  model.frozen = {{"scale", DType::kFloat32, {}, {scale, scale + sizeof(kScale)}}};
  auto source = std::make_unique<Source>();
  for (const std::uint64_t size : sizes) {
    model.programs.push_back({Program::kStep, size});
    source->codes.push_back(step_code(size));
    model.programs.push_back({Program::kEvaluate, size});
    source->codes.push_back(evaluate_code(size));
    model.programs.push_back({Program::kPredict, size});
    source->codes.push_back(predict_code(size));
  }
  source->programs = model.programs;
  model.source = std::move(source);
  return model;
}

// The same model, whose step has two stages. The first one gives the gradient of `noise`, and passes the errors to the
// second one, which gives the gradient of `w` and the new state.
StableHloModel staged_model(const std::vector<std::uint64_t>& sizes) {
  // Inputs: 0 w, 1 seen, 2 noise, 3 scale, 4 x, 5 y, 6 the seed. Results: 7 loss, 8 accumulators, 9 w, 10 seen, 11
  // noise.
  constexpr std::uint32_t kErrors = 12;
  StableHloModel model = linear_model(sizes);
  model.stages = {{{0, 3, 4, 5, 6}, {7, 8, 11, kErrors}}, {{1, 3, 4, kErrors}, {9, 10}}};
  auto& source = static_cast<Source&>(*model.source);
  const std::string seeds = "%seeds = stablehlo.convert %seed : (tensor<2xui32>) -> tensor<2xf32>\n";
  for (const std::uint64_t size : sizes) {
    const auto step = std::find(model.programs.begin(), model.programs.end(), StableHloProgram{Program::kStep, size});
    const auto place = step - model.programs.begin();
    step->stage = 0;
    source.codes[static_cast<std::size_t>(place)] = module_of(
        "%w: tensor<3xf32>, %scale: tensor<f32>, %x: tensor<Nx3xf32>, %y: tensor<Nxi32>, %seed: tensor<2xui32>",
        "tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<Nxf32>",
        std::string(kForward) + kLoss + seeds +
            "return %loss, %metrics, %seeds, %error : tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<Nxf32>",
        size);
    model.programs.push_back({Program::kStep, size, 1});
    source.codes.push_back(
        module_of("%seen: tensor<f32>, %scale: tensor<f32>, %x: tensor<Nx3xf32>, %error: tensor<Nxf32>",
                  "tensor<3xf32>, tensor<f32>",
                  "%count = stablehlo.constant dense<N.0> : tensor<f32>\n" + replace_all(kGradients, seeds, "") +
                      "return %gradient, %seen_now : tensor<3xf32>, tensor<f32>",
                  size));
  }
  source.programs = model.programs;
  return model;
}

// Records of the two columns.
struct Data {
  explicit Data(std::uint64_t examples) {
    for (std::uint64_t i = 0; i < examples; ++i) {
      for (std::uint64_t f = 0; f < kFeatures; ++f)
        x.push_back(0.25F * static_cast<float>((i * 7 + f * 3) % 11) - 1.0F);
      y.push_back(static_cast<std::int32_t>(i % 4));
    }
    columns = {ColumnValues{std::as_bytes(std::span(x)), {}}, ColumnValues{std::as_bytes(std::span(y)), {}}};
  }
  Batch batch() const { return {y.size(), columns}; }

  std::vector<float> x;
  std::vector<std::int32_t> y;
  std::vector<ColumnValues> columns;
};

// What the model computes for a batch.
struct Reference {
  explicit Reference(const Data& data, const std::vector<double>& w = {0.1, -0.2, 0.3}) : gradient(kFeatures) {
    const std::size_t examples = data.y.size();
    for (std::size_t i = 0; i < examples; ++i) {
      double output = 0.0;
      for (std::size_t f = 0; f < kFeatures; ++f) output += kScale * data.x[i * kFeatures + f] * w[f];
      outputs.push_back(static_cast<float>(output));
      const double error = output - data.y[i];
      loss_sum += error * error;
      for (std::size_t f = 0; f < kFeatures; ++f)
        gradient[f] +=
            static_cast<float>(2.0 * kScale * error * data.x[i * kFeatures + f] / static_cast<double>(examples));
    }
  }
  double loss_sum = 0.0;
  std::vector<float> gradient;
  std::vector<float> outputs;
};

class PjrtProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    plugin_ = test::cpu_plugin();
    if (!plugin_) GTEST_SKIP() << test::kNoPlugin;
  }

  // Opens the model in a layout whose order isn't that of the variables: noise, seen, w.
  void open(StableHloModel model) {
    Result<std::unique_ptr<Computation>> made = make_pjrt_program(*plugin_, std::move(model));
    ASSERT_TRUE(made) << made.error().message;
    program_ = std::move(*made);
    Layout layout;
    layout.model = program_->describe();
    layout.shards = 1;
    layout.variable_begins = {3, 2, 0};
    ASSERT_TRUE(program_->open(layout, parameters_, gradients_));
    const Result<std::vector<float>> values = program_->initial_values();
    ASSERT_TRUE(values);
    parameters_ = *values;
    ASSERT_TRUE(program_->open(layout, parameters_, gradients_));
  }

  Result<EngineOutput> step(const Data& data, const StepSeed& seed = {}) {
    ranges_.clear();
    return program_->step(data.batch(), seed,
                          [this](std::uint64_t begin, std::uint64_t end) { ranges_.emplace_back(begin, end); });
  }

  std::vector<float> w_gradient() const { return {gradients_.begin() + 3, gradients_.end()}; }

  std::optional<std::string> plugin_;
  std::vector<float> parameters_ = std::vector<float>(6);
  std::vector<float> gradients_ = std::vector<float>(6);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::unique_ptr<Computation> program_;  // ends before the arrays
};

TEST_F(PjrtProgramTest, InitialValuesAreInTheOrderOfTheLayout) {
  open(linear_model({1}));
  EXPECT_THAT(parameters_, ElementsAre(0.0F, 0.0F, 0.0F, 0.1F, -0.2F, 0.3F));
}

TEST_F(PjrtProgramTest, AStepOfAnExportedSizeComputesLossMetricsGradientsAndState) {
  open(linear_model({4}));
  const Data data(4);
  const Reference reference(data);
  parameters_[2] = 100.0F;  // seen
  const Result<EngineOutput> output = step(data);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_NEAR(output->loss_sum, reference.loss_sum, 1e-5);
  EXPECT_EQ(output->examples, 4U);
  EXPECT_THAT(output->metrics, ElementsAre(testing::DoubleNear(reference.loss_sum, 1e-5), 4.0));
  EXPECT_THAT(w_gradient(), Pointwise(FloatNear(1e-5F), reference.gradient));
  EXPECT_EQ(gradients_[2], 104.0F);
}

TEST_F(PjrtProgramTest, RangesAscendWithoutGapsOverAllElements) {
  open(linear_model({2, 1}));
  ASSERT_TRUE(step(Data(3)));
  EXPECT_THAT(ranges_, ElementsAre(std::pair(0, 2), std::pair(2, 3), std::pair(3, 6)));
}

TEST_F(PjrtProgramTest, ABatchOfAnotherSizeIsComposedOfParts) {
  open(linear_model({4, 2, 1}));
  for (const std::uint64_t examples : {1U, 3U, 7U, 13U}) {
    const Data data(examples);
    const Reference reference(data);
    const Result<EngineOutput> output = step(data);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_NEAR(output->loss_sum, reference.loss_sum, 1e-4) << examples;
    EXPECT_THAT(w_gradient(), Pointwise(FloatNear(1e-5F), reference.gradient)) << examples;
    EXPECT_THAT(output->metrics, ElementsAre(testing::DoubleNear(reference.loss_sum, 1e-4), examples));
    EXPECT_EQ(gradients_[2], static_cast<float>(examples)) << "each part begins with the state of the part before";
    EXPECT_EQ(output->examples, examples);
  }
}

TEST_F(PjrtProgramTest, ParametersMayBeOverwrittenOnceTheirGradientsAreReady) {
  open(linear_model({4, 1}));
  const Data data(6);
  const Reference reference(data);
  const RangeReady overwrite = [this](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t e = begin; e < end; ++e) parameters_[e] = 1e30F;
  };
  ASSERT_TRUE(program_->step(data.batch(), {}, overwrite));
  EXPECT_THAT(w_gradient(), Pointwise(FloatNear(1e-5F), reference.gradient));
}

TEST_F(PjrtProgramTest, StagesComputeWhatTheWholeStepDoes) {
  open(staged_model({4, 1}));
  for (const std::uint64_t examples : {1U, 4U, 6U}) {
    const Data data(examples);
    const Reference reference(data);
    const Result<EngineOutput> output = step(data);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_NEAR(output->loss_sum, reference.loss_sum, 1e-4) << examples;
    EXPECT_THAT(output->metrics, ElementsAre(testing::DoubleNear(reference.loss_sum, 1e-4), examples));
    EXPECT_THAT(w_gradient(), Pointwise(FloatNear(1e-5F), reference.gradient)) << examples;
    EXPECT_EQ(gradients_[2], static_cast<float>(examples)) << "each part begins with the state of the part before";
    EXPECT_NE(gradients_[0], 0.0F);
    EXPECT_THAT(ranges_, ElementsAre(std::pair(0, 2), std::pair(2, 3), std::pair(3, 6)));
  }
}

TEST_F(PjrtProgramTest, TheFirstGradientsAreReadyBeforeTheLastStageRuns) {
  open(staged_model({4}));
  const Data data(4);
  const Reference reference(data);
  gradients_.assign(6, 42.0F);
  std::vector<std::vector<float>> found;  // the gradient of w whenever a range is ready
  ASSERT_TRUE(program_->step(data.batch(), {}, [&](std::uint64_t begin, std::uint64_t end) {
    found.push_back(w_gradient());
    for (std::uint64_t e = begin; e < end; ++e) parameters_[e] = 1e30F;
  }));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0], testing::Each(42.0F));
  EXPECT_THAT(found[2], Pointwise(FloatNear(1e-5F), reference.gradient));
}

TEST_F(PjrtProgramTest, AStageWhoseOutputsDontFitIsRefused) {
  StableHloModel model = staged_model({4});
  std::swap(model.stages[1].gives[0], model.stages[1].gives[1]);
  open(std::move(model));
  const Result<EngineOutput> output = step(Data(4));
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().message, HasSubstr("program \"step_1-4\" doesn't fit its model: output 0 is float32[3]; "
                                                "expected float32[]"));
}

TEST_F(PjrtProgramTest, EachStepReadsTheParametersAsTheyAreThen) {
  open(linear_model({4}));
  const Data data(4);
  ASSERT_TRUE(step(data));
  parameters_[3] = 2.0F;
  ASSERT_TRUE(step(data));
  EXPECT_THAT(w_gradient(), Pointwise(FloatNear(1e-4F), Reference(data, {2.0, -0.2, 0.3}).gradient));
}

TEST_F(PjrtProgramTest, TheSeedIsAFunctionOfJobStepAndRank) {
  open(linear_model({4}));
  const Data data(4);
  const auto noise_of = [&](const StepSeed& seed) {
    EXPECT_TRUE(step(data, seed));
    return std::vector<float>{gradients_[0], gradients_[1]};
  };
  const std::vector<float> first = noise_of({.job_seed = 1, .step = 2, .rank = 3});
  EXPECT_EQ(first, noise_of({.job_seed = 1, .step = 2, .rank = 3}));
  EXPECT_NE(first, noise_of({.job_seed = 2, .step = 2, .rank = 3}));
  EXPECT_NE(first, noise_of({.job_seed = 1, .step = 3, .rank = 3}));
  EXPECT_NE(first, noise_of({.job_seed = 1, .step = 2, .rank = 4}));
}

TEST_F(PjrtProgramTest, EachPartHasASeedOfItsOwn) {
  open(linear_model({1}));
  ASSERT_TRUE(step(Data(1)));
  const float of_first_part = gradients_[0];
  ASSERT_TRUE(step(Data(2)));
  EXPECT_NE(gradients_[0], of_first_part);  // the mean of both parts
}

TEST_F(PjrtProgramTest, StateOfOneExampleThatIsntFiniteKeepsItsOldValue) {
  StableHloModel model = linear_model({2, 1});
  // A part of one example makes the state infinite.
  code_of(model, 3) = replace_all(code_of(model, 3), "stablehlo.add %seen, %count", "stablehlo.divide %loss, %zero");
  open(std::move(model));
  parameters_[2] = 10.0F;
  ASSERT_TRUE(step(Data(1)));
  EXPECT_EQ(gradients_[2], 10.0F);
  ASSERT_TRUE(step(Data(3)));
  EXPECT_EQ(gradients_[2], 12.0F);
}

TEST_F(PjrtProgramTest, StateOfSeveralExamplesThatIsntFiniteIsPassedOn) {
  StableHloModel model = linear_model({2, 1});
  code_of(model, 0) = replace_all(code_of(model, 0), "stablehlo.add %seen, %count", "stablehlo.divide %loss, %zero");
  open(std::move(model));
  ASSERT_TRUE(step(Data(2)));
  EXPECT_FALSE(std::isfinite(gradients_[2]));
}

TEST_F(PjrtProgramTest, AnEvaluationAddsTheParts) {
  open(linear_model({4, 2, 1}));
  const Data data(7);
  const Reference reference(data);
  gradients_.assign(6, 42.0F);
  const Result<EngineOutput> output = program_->evaluate(data.batch());
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_NEAR(output->loss_sum, reference.loss_sum, 1e-4);
  EXPECT_THAT(output->metrics, ElementsAre(testing::DoubleNear(reference.loss_sum, 1e-4), 7.0));
  EXPECT_THAT(gradients_, testing::Each(42.0F));
}

TEST_F(PjrtProgramTest, APredictionReturnsTheOutputsOfAllParts) {
  open(linear_model({4, 1}));
  const Data data(6);
  const Result<EngineOutput> output = program_->predict(data.batch());
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_THAT(output->outputs, Pointwise(FloatNear(1e-6F), Reference(data).outputs));
  EXPECT_TRUE(output->metrics.empty());
}

TEST_F(PjrtProgramTest, TheModelCanMoveToOtherArrays) {
  open(linear_model({4}));
  const Data data(4);
  std::vector<float> parameters = {0.3F, -0.2F, 0.1F, 0.0F, 0.0F, 5.0F};  // w, noise, seen
  std::vector<float> gradients(6);
  Layout layout;
  layout.model = program_->describe();
  layout.variable_begins = {0, 5, 3};
  ASSERT_TRUE(program_->open(layout, parameters, gradients));
  ASSERT_TRUE(step(data));
  gradients.resize(3);
  EXPECT_THAT(gradients, Pointwise(FloatNear(1e-5F), Reference(data, {0.3, -0.2, 0.1}).gradient));
}

// ---- errors ----

void expect_error(const Result<EngineOutput>& output, ErrorCode code, const std::string& part) {
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, code);
  EXPECT_THAT(output.error().message, HasSubstr(part));
}

TEST_F(PjrtProgramTest, ABatchThatTheSizesCantComposeIsRefused) {
  open(linear_model({4, 2}));
  expect_error(step(Data(7)), ErrorCode::kConfig,
               "can't compute a batch of 7 examples: the model was exported for batches of 4, 2, which leave 1 over");
}

TEST_F(PjrtProgramTest, AProgramThatTheModelDoesntHaveIsRefused) {
  StableHloModel model = linear_model({4});
  model.programs.pop_back();
  open(std::move(model));
  expect_error(program_->predict(Data(4).batch()), ErrorCode::kConfig, "the model has no program \"predict\"");
}

TEST_F(PjrtProgramTest, TextThatIsNoProgramIsRefused) {
  StableHloModel model = linear_model({4});
  code_of(model, 0) = "this is no StableHLO";
  open(std::move(model));
  expect_error(step(Data(4)), ErrorCode::kConfig, "compiling program \"step-4\": the PJRT plugin said: ");
  expect_error(step(Data(4)), ErrorCode::kConfig, "compiling program \"step-4\": the PJRT plugin said: ");
}

TEST_F(PjrtProgramTest, OutputsThatDontFitTheModelAreRefused) {
  StableHloModel model = linear_model({4});
  code_of(model, 0) = evaluate_code(4);
  code_of(model, 1) = predict_code(4);
  code_of(model, 2) = evaluate_code(4);
  open(std::move(model));
  const Data data(4);
  expect_error(step(data), ErrorCode::kConfig,
               "program \"step-4\" doesn't fit its model: output 2 is nothing; expected float32[3]");
  expect_error(program_->evaluate(data.batch()), ErrorCode::kConfig, "output 0 is float32[4]; expected float32[]");
  expect_error(program_->predict(data.batch()), ErrorCode::kConfig, "output 0 is float32[]; expected float32[4, 1]");
}

TEST_F(PjrtProgramTest, InputsThatDontFitTheProgramAreRefused) {
  StableHloModel model = linear_model({4});
  model.frozen.clear();
  open(std::move(model));
  expect_error(program_->evaluate(Data(4).batch()), ErrorCode::kFailed, "running program \"evaluate-4\"");
}

}  // namespace
}  // namespace disttrain::workerd::pjrt
