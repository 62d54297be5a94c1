#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

using test::Ran;
using test::Ranges;
using test::Variables;

ModelSection mlp(std::vector<std::uint32_t> layers, Activation activation, Loss loss) {
  ModelSection model;
  model.builtin = "mlp";
  model.layers = std::move(layers);
  model.activation = activation;
  model.loss = loss;
  return model;
}

ModelSection cnn(double dropout) {
  ModelSection model;
  model.builtin = "cnn";
  model.dropout = dropout;
  return model;
}

// An engine that is open, with random parameters and random records.
class Bench {
 public:
  explicit Bench(const ModelSection& model, std::uint64_t examples, std::uint32_t threads = 1)
      : engine_(make_compute_engine(make_torch_model(model, threads).value(), loop_.post())),
        layout_(test::reversed_layout(engine_->describe())),
        parameters_(test::random_floats(element_count(layout_.model), 0.3F, 1)),
        gradients_(parameters_.size(), std::numeric_limits<float>::quiet_NaN()) {
    outputs_ = element_count(layout_.model.variables.back());
    resize(examples);
    EXPECT_TRUE(engine_->open(layout_, parameters_, gradients_).has_value());
  }

  void resize(std::uint64_t examples) {
    inputs_ = test::random_floats(examples * element_count(layout_.model.columns[0]), 1.0F, 2);
    labels_.clear();
    for (std::uint64_t i = 0; i < examples; ++i) labels_.push_back(static_cast<std::int64_t>(i * 7 % outputs_));
    targets_ = test::random_floats(examples * outputs_, 1.0F, 3);
    for (float& target : targets_) target = target * 0.5F + 0.5F;
  }

  // Makes most inputs zero, so that the sparse products are used.
  void make_sparse() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (i * 2654435761U % 101 > 20) inputs_[i] = 0.0F;
  }

  // With a loss that compares values, a label becomes a 1 at the label's index among zeros.
  Records with_labels() {
    if (layout_.model.columns[1].dtype == DType::kInt64) return {labels_.size(), inputs_, labels_, {}};
    ones_.assign(labels_.size() * outputs_, 0.0F);
    for (std::size_t i = 0; i < labels_.size(); ++i) ones_[i * outputs_ + static_cast<std::size_t>(labels_[i])] = 1.0F;
    return {labels_.size(), inputs_, {}, ones_};
  }
  Records with_targets() const { return {labels_.size(), inputs_, {}, targets_}; }

  Ran compute(const Records& batch, const StepSeed& seed = {}) {
    return test::run(*engine_, loop_, Program::kStep, batch, seed);
  }
  Result<EngineOutput> evaluate(const Records& batch) {
    return test::run(*engine_, loop_, Program::kEvaluate, batch).output;
  }

  Variables parameters() const { return test::split(layout_, parameters_); }
  Variables gradients() const { return test::split(layout_, gradients_); }
  std::vector<float>& flat_gradients() { return gradients_; }
  std::vector<float>& flat_parameters() { return parameters_; }
  std::vector<float>& inputs() { return inputs_; }
  std::vector<std::int64_t>& labels() { return labels_; }
  const Layout& layout() const { return layout_; }
  Engine& engine() { return *engine_; }

 private:
  test::Loop loop_;
  const std::unique_ptr<Engine> engine_;
  const Layout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::uint64_t outputs_ = 0;
  std::vector<float> inputs_;
  std::vector<std::int64_t> labels_;
  std::vector<float> targets_;
  std::vector<float> ones_;
};

// Compares gradients with central differences of `loss`: for each variable, every `stride`-th element and the last one.
template <typename LossFunction>
void expect_gradients_of(const LossFunction& loss, Bench& bench, std::size_t stride) {
  const Variables parameters = bench.parameters();
  const Variables gradients = bench.gradients();
  for (std::size_t v = 0; v < gradients.size(); ++v)
    for (std::size_t e = 0; e < gradients[v].size();
         e = e + 1 == gradients[v].size() ? e + 1 : std::min(e + stride, gradients[v].size() - 1)) {
      const double expected = test::difference(loss, parameters, v, e);
      ASSERT_NEAR(gradients[v][e], expected, 2e-6 + 2e-4 * std::fabs(expected))
          << bench.layout().model.variables[v].name << " element " << e;
    }
}

class MlpGradients : public testing::TestWithParam<std::tuple<Activation, Loss>> {};

TEST_P(MlpGradients, EqualFiniteDifferences) {
  const auto [activation, loss] = GetParam();
  const ModelSection model = mlp({7, 9, 6, 5}, activation, loss);
  Bench bench(model, 4);
  const Records batch = bench.with_labels();
  const auto reference = [&](const Variables& v) { return test::mlp_loss(model, v, batch); };
  const Ran result = bench.compute(batch);
  ASSERT_TRUE(result.output) << result.output.error().message;
  EXPECT_NEAR(result.loss(), reference(bench.parameters()), 1e-5);
  expect_gradients_of(reference, bench, 1);
}

TEST_P(MlpGradients, EqualFiniteDifferencesWithTargets) {
  const auto [activation, loss] = GetParam();
  if (loss == Loss::kSoftmaxCrossEntropy) return;  // wants labels
  const ModelSection model = mlp({3, 4, 1}, activation, loss);
  Bench bench(model, 5);
  const Records batch = bench.with_targets();
  const auto reference = [&](const Variables& v) { return test::mlp_loss(model, v, batch); };
  const Ran result = bench.compute(batch);
  ASSERT_TRUE(result.output) << result.output.error().message;
  EXPECT_NEAR(result.loss(), reference(bench.parameters()), 1e-5);
  expect_gradients_of(reference, bench, 1);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Activation, Loss>>& info) {
  constexpr const char* kActivations[] = {"sigmoid", "relu", "tanh", "gelu"};
  constexpr const char* kLosses[] = {"softmax_cross_entropy", "mse", "sigmoid_cross_entropy"};
  return std::string(kActivations[static_cast<int>(std::get<0>(info.param))]) + "_" +
         kLosses[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    AllOf, MlpGradients,
    testing::Combine(testing::Values(Activation::kSigmoid, Activation::kRelu, Activation::kTanh, Activation::kGelu),
                     testing::Values(Loss::kSoftmaxCrossEntropy, Loss::kMse, Loss::kSigmoidCrossEntropy)),
    name_of);

// The engine has several ways to multiply: some for few rows, some for many rows, some for sparse inputs. The cases
// cover all three kinds. The sizes aren't multiples of vectors or tiles.
TEST(MlpGradientsOfShapes, EqualFiniteDifferences) {
  struct Case {
    std::uint64_t examples;
    std::vector<std::uint32_t> layers;
    bool sparse;
  };
  const std::vector<Case> cases = {{1, {130, 67, 10}, false},  {10, {70, 150, 71, 10}, false},
                                   {33, {40, 37, 10}, false},  {40, {230, 30, 5}, true},
                                   {20, {300, 100, 10}, true}, {64, {115, 129, 3}, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE("batch " + std::to_string(c.examples));
    const ModelSection model = mlp(c.layers, Activation::kTanh, Loss::kSoftmaxCrossEntropy);
    Bench bench(model, c.examples);
    if (c.sparse) bench.make_sparse();
    const Records batch = bench.with_labels();
    ASSERT_TRUE(bench.compute(batch).output);
    expect_gradients_of([&](const Variables& v) { return test::mlp_loss(model, v, batch); }, bench, 331);
  }
}

TEST(MlpEngine, SparseAndDenseProductsAgree) {
  const ModelSection model = mlp({784, 100, 10}, Activation::kSigmoid, Loss::kSoftmaxCrossEntropy);
  Bench bench(model, 100);
  bench.make_sparse();
  ASSERT_TRUE(bench.compute(bench.with_labels()).output);
  const std::vector<float> sparse = bench.flat_gradients();
  for (float& input : bench.inputs())
    if (input == 0.0F) input = 1e-30F;  // almost zero, but not zero
  ASSERT_TRUE(bench.compute(bench.with_labels()).output);
  for (std::size_t e = 0; e < sparse.size(); ++e) ASSERT_NEAR(sparse[e], bench.flat_gradients()[e], 1e-6) << e;
}

TEST(MlpEngine, SameStepGivesTheSameBits) {
  for (std::uint64_t examples : {10U, 100U}) {
    Bench bench(mlp({784, 100, 10}, Activation::kSigmoid, Loss::kSoftmaxCrossEntropy), examples);
    ASSERT_TRUE(bench.compute(bench.with_labels()).output);
    const std::vector<float> first = bench.flat_gradients();
    ASSERT_TRUE(bench.compute(bench.with_labels()).output);
    EXPECT_EQ(first, bench.flat_gradients());
  }
}

TEST(MlpEngine, ThreadsAgree) {
  const ModelSection model = mlp({300, 500, 10}, Activation::kRelu, Loss::kSoftmaxCrossEntropy);
  for (std::uint64_t examples : {10U, 100U}) {
    Bench one(model, examples, 1);
    Bench two(model, examples, 2);
    for (Bench* bench : {&one, &two}) ASSERT_TRUE(bench->compute(bench->with_labels()).output);
    for (std::size_t e = 0; e < one.flat_gradients().size(); ++e)
      ASSERT_NEAR(one.flat_gradients()[e], two.flat_gradients()[e], 1e-6) << e;
  }
}

TEST(MlpEngine, AnotherBatchSizeOverwritesAllGradients) {
  const ModelSection model = mlp({20, 12, 4}, Activation::kGelu, Loss::kMse);
  Bench bench(model, 50);
  ASSERT_TRUE(bench.compute(bench.with_labels()).output);
  bench.resize(3);
  const Records batch = bench.with_labels();
  ASSERT_TRUE(bench.compute(batch).output);
  expect_gradients_of([&](const Variables& v) { return test::mlp_loss(model, v, batch); }, bench, 5);
}

Ranges ranges_of_a_step(Bench& bench) {
  const Ran ran = bench.compute(bench.with_labels());
  EXPECT_TRUE(ran.output) << ran.output.error().message;
  return ran.ranges;
}

TEST(MlpEngine, AnnouncesVariablesFromTheLastToTheFirst) {
  Bench bench(mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 2);
  EXPECT_EQ(ranges_of_a_step(bench), (Ranges{{0, 4}, {4, 24}, {24, 29}, {29, 59}}));
}

TEST(MlpEngine, AnnouncesALargeVariableBucketByBucket) {
  Bench bench(mlp({1000, 1024, 2}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 10);
  const Ranges ranges = ranges_of_a_step(bench);
  ASSERT_EQ(ranges.size(), 7U);
  EXPECT_EQ(ranges[3], (std::pair<std::uint64_t, std::uint64_t>{3074, 3074 + kMaxBucketWords}));
  EXPECT_EQ(ranges.back().second, bench.flat_gradients().size());
}

TEST(MlpEngine, AnnouncesWhatIsFinalFromTheFrontInAnyLayout) {
  const ModelSection model = mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy);
  Bench bench(model, 2);
  const std::vector<float> expected = [&] {
    EXPECT_TRUE(bench.compute(bench.with_labels()).output);
    std::vector<float> first_variable = bench.flat_gradients();
    return std::vector<float>(first_variable.begin() + 29, first_variable.end());
  }();
  Layout forward = bench.layout();
  forward.variable_begins = {0, 30, 35, 55};
  std::vector<float> parameters(59);
  for (std::size_t v = 0; v < 4; ++v)
    std::copy_n(bench.flat_parameters().begin() + static_cast<std::ptrdiff_t>(bench.layout().variable_begins[v]),
                element_count(forward.model.variables[v]),
                parameters.begin() + static_cast<std::ptrdiff_t>(forward.variable_begins[v]));
  std::vector<float> gradients(59);
  ASSERT_TRUE(bench.engine().open(forward, parameters, gradients).has_value());
  EXPECT_EQ(ranges_of_a_step(bench), (Ranges{{0, 59}}));
  EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.begin() + 30), expected);
}

TEST(TorchModel, EmptyBatchGivesZeroGradientsAndNoLoss) {
  Bench bench(mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 0);
  EXPECT_EQ(ranges_of_a_step(bench), (Ranges{{0, 59}}));
  EXPECT_EQ(bench.flat_gradients(), std::vector<float>(59, 0.0F));
  EXPECT_EQ(bench.compute(bench.with_labels()).output->examples, 0U);
  EXPECT_EQ(bench.evaluate(bench.with_labels())->examples, 0U);
}

TEST(TorchModel, LabelOutOfRangeIsAnErrorThatNamesIt) {
  Bench bench(mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 2);
  bench.labels()[1] = 4;
  const Ran result = bench.compute(bench.with_labels());
  ASSERT_FALSE(result.output);
  EXPECT_EQ(result.output.error().code, ErrorCode::kData);
  EXPECT_THAT(result.output.error().message, testing::HasSubstr("label 4; the model has classes 0 to 3"));
  bench.labels()[1] = -1;
  EXPECT_FALSE(bench.evaluate(bench.with_labels()));
}

TEST(TorchModel, InputsOfAnotherSizeAreAnError) {
  Bench bench(mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 2);
  bench.inputs().pop_back();
  const Ran result = bench.compute(bench.with_labels());
  ASSERT_FALSE(result.output);
  EXPECT_THAT(result.output.error().message, testing::HasSubstr("11 input values; the model expects 12"));
}

TEST(TorchModel, InfiniteParametersGiveANonfiniteLossAndNoError) {
  Bench bench(mlp({6, 5, 4}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 2);
  for (float& parameter : bench.flat_parameters()) parameter = std::numeric_limits<float>::infinity();
  const Ran result = bench.compute(bench.with_labels());
  ASSERT_TRUE(result.output);
  EXPECT_FALSE(std::isfinite(result.output->loss_sum));
}

TEST(TorchModel, EvaluationCountsWhatThePredictionsSay) {
  Bench bench(mlp({1, 3}, Activation::kRelu, Loss::kSoftmaxCrossEntropy), 3);
  // Biases, then weights: the model predicts class 2 if x > 0.5, and otherwise class 1.
  bench.flat_parameters() = {0.0F, 1.0F, 0.0F, 0.0F, 0.0F, 2.0F};
  bench.inputs() = {1.0F, 0.25F, -1.0F};
  bench.labels() = {2, 2, 1};
  const Result<EngineOutput> result = bench.evaluate(bench.with_labels());
  ASSERT_TRUE(result);
  EXPECT_THAT(result->metrics, testing::ElementsAre(2.0, 3.0));
  EXPECT_EQ(result->examples, 3U);
  const double loss_sum = result->loss_sum;
  EXPECT_NEAR(loss_sum, bench.compute(bench.with_labels()).output->loss_sum, 1e-5);
}

TEST(TorchModel, ModelThatCantBeBuiltIsAConfigError) {
  const Result<std::unique_ptr<Computation>> made = make_torch_model(mlp({784}, Activation::kRelu, Loss::kMse), 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kConfig);
}

TEST(CnnEngine, GradientsEqualFiniteDifferences) {
  for (Activation activation : {Activation::kTanh, Activation::kGelu}) {
    ModelSection model = cnn(0.5);
    model.activation = activation;
    Bench bench(model, 2);
    for (float& parameter : bench.flat_parameters()) parameter *= 0.3F;
    const Records batch = bench.with_labels();
    const StepSeed seed{7, 3, 1};
    const auto reference = [&](const Variables& v) { return test::cnn_loss(model, v, batch, &seed); };
    const Ran result = bench.compute(batch, seed);
    ASSERT_TRUE(result.output) << result.output.error().message;
    EXPECT_NEAR(result.loss(), reference(bench.parameters()), 1e-5);
    expect_gradients_of(reference, bench, 150'001);
  }
}

TEST(CnnEngine, DropoutIsAFunctionOfTheStepSeed) {
  Bench bench(cnn(0.5), 2);
  const Records batch = bench.with_labels();
  const float loss = bench.compute(batch, {1, 2, 3}).loss();
  const std::vector<float> gradients = bench.flat_gradients();
  EXPECT_NE(bench.compute(batch, {2, 2, 3}).loss(), loss);
  EXPECT_NE(bench.compute(batch, {1, 3, 3}).loss(), loss);
  EXPECT_NE(bench.compute(batch, {1, 2, 4}).loss(), loss);
  EXPECT_EQ(bench.compute(batch, {1, 2, 3}).loss(), loss);
  EXPECT_EQ(bench.flat_gradients(), gradients);
}

TEST(CnnEngine, EvaluationHasNoDropout) {
  Bench bench(cnn(0.5), 3);
  for (float& parameter : bench.flat_parameters()) parameter *= 0.3F;
  const Records batch = bench.with_labels();
  const double expected = test::cnn_loss(cnn(0.5), bench.parameters(), batch, nullptr) * 3.0;
  EXPECT_NEAR(bench.evaluate(batch)->loss_sum, expected, 1e-4);
}

TEST(CnnEngine, AnnouncesVariablesFromTheLastToTheFirst) {
  Bench bench(cnn(0.5), 2);
  std::vector<std::uint64_t> ends;
  for (const auto& range : ranges_of_a_step(bench)) ends.push_back(range.second);
  EXPECT_EQ(ends.front(), 10U);
  EXPECT_EQ(ends.back(), element_count(bench.layout().model));
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  EXPECT_GE(ends.size(), 8U);
}

TEST(Dropout, KeepsTheExpectedSum) {
  std::vector<float> mask(100'000);
  dropout_mask({1, 1, 1}, 0.25, mask);
  double sum = 0.0;
  for (float factor : mask) {
    sum += static_cast<double>(factor);
    ASSERT_TRUE(factor == 0.0F || factor == 1.0F / 0.75F) << factor;
  }
  EXPECT_NEAR(sum / 100'000, 1.0, 0.01);
}

}  // namespace
}  // namespace disttrain::workerd
