// The models of engine/autograd: when parameters are ready, bits, dropout, predictions and bad records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/autograd_bench.h"

namespace disttrain::workerd {
namespace {

using test::Bench;
using test::Case;
using test::floats;
using test::integers;
using test::mlp_case;
using test::model_of;
using test::resnet_case;
using test::TestBatch;
using test::transformer_case;
using test::wide_deep_case;
using testing::HasSubstr;

class SmallModel : public testing::TestWithParam<Case> {};

TEST_P(SmallModel, GivesTheSameBitsAgain) {
  for (const std::uint32_t threads : {0U, 2U}) {
    TestBatch records = GetParam().records;
    Bench first(GetParam().model, threads);
    Bench second(GetParam().model, threads);
    for (int step = 0; step < 2; ++step) {
      EXPECT_EQ(first.step(records), second.step(records));
      EXPECT_EQ(first.gradients(), second.gradients());
      first.apply();
      second.apply();
    }
  }
}

TEST_P(SmallModel, MayLoseItsParametersWhenTheyAreReady) {
  // A caller may overwrite parameters as soon as their gradients are final. If the model still read them, the gradients
  // would be NaN.
  TestBatch records = GetParam().records;
  Bench whole(GetParam().model);
  whole.step(records);
  Bench bench(GetParam().model);
  std::vector<float> announced;
  const auto ready = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      announced.push_back(bench.gradients()[i]);
      bench.parameters()[i] = std::numeric_limits<float>::quiet_NaN();
    }
  };
  ASSERT_TRUE(bench.computation().step(records.batch(), {}, ready));
  EXPECT_EQ(bench.gradients(), whole.gradients());
  EXPECT_EQ(announced, whole.gradients()) << "gradients are final when they are announced";
}

INSTANTIATE_TEST_SUITE_P(Each, SmallModel, testing::ValuesIn(test::small_cases()), test::name_of);

// The models with kernels of their own, which compute the same.
void expect_like_own_kernels(const ModelSection& model, const TestBatch& batch, const StepSeed& seed) {
  TestBatch records = batch;
  Bench own(model, 1);
  Bench bench(model);
  EXPECT_NEAR(bench.step(records, seed), own.step(records, seed), 1e-5);
  for (std::size_t v = 0; v < bench.spec().variables.size(); ++v)
    for (std::size_t e = 0; e < bench.gradient(v).size(); ++e)
      ASSERT_NEAR(bench.gradient(v)[e], own.gradient(v)[e], 1e-5) << bench.spec().variables[v].name << " " << e;
  const Result<EngineOutput> own_step = own.computation().step(records.batch(), seed, {});
  const Result<EngineOutput> step = bench.computation().step(records.batch(), seed, {});
  ASSERT_TRUE(own_step && step);
  EXPECT_TRUE(std::ranges::equal(step->metrics, own_step->metrics));
  EXPECT_EQ(step->metrics.size(), accumulator_size(bench.spec().metrics));
  const Result<EngineOutput> expected = own.evaluate(records);
  const Result<EngineOutput> evaluated = bench.evaluate(records);
  ASSERT_TRUE(expected && evaluated);
  EXPECT_NEAR(evaluated->loss_sum, expected->loss_sum, 1e-4);
  EXPECT_TRUE(std::ranges::equal(evaluated->metrics, expected->metrics));
}

TEST(AutogradModel, ComputesAnMlpLikeItsOwnKernels) {
  ModelSection model = model_of("mlp");
  model.layers = {7, 9, 4};
  for (const Activation activation : {Activation::kSigmoid, Activation::kRelu, Activation::kTanh, Activation::kGelu}) {
    model.activation = activation;
    for (const Loss loss : {Loss::kSoftmaxCrossEntropy, Loss::kMse, Loss::kSigmoidCrossEntropy}) {
      model.loss = loss;
      TestBatch records = TestBatch(6).add(floats(1, 42));
      if (loss == Loss::kSoftmaxCrossEntropy)
        records.add(integers<std::int64_t>(2, 4, 6));
      else
        records.add(integers<float>(2, 2, 24));
      expect_like_own_kernels(model, records, {});
    }
  }
}

TEST(AutogradModel, ComputesACnnLikeItsOwnKernelsWithTheSameDropout) {
  ModelSection model = model_of("cnn");
  model.dropout = 0.5;
  expect_like_own_kernels(model, TestBatch(3).add(floats(1, 3 * 784)).add(integers<std::int64_t>(2, 10, 3)),
                          {.job_seed = 3, .step = 17, .rank = 1});
}

// Softmax cross-entropy is linear in the labels' shares.
TEST(SoftLabels, GiveTheMeanOfTheLossesOfTheirClasses) {
  ModelSection model = model_of("mlp");
  model.layers = {7, 9, 4};
  model.label_smoothing = 0.1;
  model.class_weights = {0.5, 1.0, 2.0, 0.25};
  const auto loss_of_labels = [&model](std::int64_t a, std::int64_t b) {
    Bench bench(model);
    TestBatch records = TestBatch(2).add(floats(1, 14)).add(std::vector<std::int64_t>{a, b});
    return bench.step(records);
  };
  const double expected = 0.25 * loss_of_labels(0, 2) + 0.75 * loss_of_labels(3, 1);
  model.has_soft_labels = true;
  Bench bench(model, 1);
  TestBatch records =
      TestBatch(2).add(floats(1, 14)).add(std::vector<float>{0.25F, 0.0F, 0.0F, 0.75F, 0.0F, 0.75F, 0.25F, 0.0F});
  EXPECT_NEAR(bench.step(records), expected, 1e-6);
  TestBatch hard = TestBatch(2).add(floats(1, 14)).add(std::vector<float>{1, 0, 0, 0, 0, 0, 1, 0});
  const Result<EngineOutput> evaluated = bench.evaluate(hard);
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  model.has_soft_labels = false;
  EXPECT_NEAR(evaluated->loss_sum / 2.0, loss_of_labels(0, 2), 1e-6);
  ASSERT_EQ(evaluated->metrics.size(), 2U);
  EXPECT_EQ(evaluated->metrics[1], 2.0) << "the accuracy counts two records";
}

// With the weights 2, 0 and 1, record a counts as if it were there twice, and record b not at all.
TEST(Weights, MultiplyTheLossOfEachRecord) {
  ModelSection mlp = model_of("mlp");
  mlp.layers = {7, 9, 4};
  ModelSection wide_deep = model_of("wide_deep");
  wide_deep.wide_deep.numeric = 7;
  wide_deep.wide_deep.outputs = 4;
  wide_deep.wide_deep.hidden = {9};
  for (ModelSection model : {mlp, wide_deep})
    for (const std::uint32_t threads : {0U, 1U})
      for (const Loss loss : {Loss::kSoftmaxCrossEntropy, Loss::kMse, Loss::kSigmoidCrossEntropy}) {
        model.loss = loss;
        const auto records_of = [loss](std::vector<std::size_t> rows, const std::vector<float>& weights) {
          const std::vector<float> all_inputs = floats(1, 21);
          const std::vector<float> all_targets = integers<float>(2, 2, 12);
          std::vector<float> inputs;
          std::vector<float> targets;
          std::vector<std::int64_t> labels;
          for (const std::size_t row : rows) {
            inputs.insert(inputs.end(), all_inputs.begin() + row * 7, all_inputs.begin() + row * 7 + 7);
            targets.insert(targets.end(), all_targets.begin() + row * 4, all_targets.begin() + row * 4 + 4);
            labels.push_back(static_cast<std::int64_t>(row));
          }
          TestBatch records = TestBatch(rows.size()).add(inputs);
          if (!weights.empty()) records.add(weights);
          return loss == Loss::kSoftmaxCrossEntropy ? records.add(labels) : records.add(targets);
        };
        Bench repeated(model, threads);
        TestBatch three = records_of({0, 0, 2}, {});
        const double expected = repeated.step(three);
        model.has_weights = true;
        Bench weighted(model, threads);
        ASSERT_EQ(weighted.spec().columns.size(), 3U);
        TestBatch with_weights = records_of({0, 1, 2}, {2.0F, 0.0F, 1.0F});
        EXPECT_NEAR(weighted.step(with_weights), expected, 1e-6);
        for (std::size_t i = 0; i < repeated.gradients().size(); ++i)
          ASSERT_NEAR(weighted.gradients()[i], repeated.gradients()[i], 1e-6);
        const Result<EngineOutput> evaluated = weighted.evaluate(with_weights);
        ASSERT_TRUE(evaluated) << evaluated.error().message;
        EXPECT_NEAR(evaluated->loss_sum / 3.0, expected, 1e-6);
        model.has_weights = false;
      }
}

TEST(AutogradModel, DropsByTheSeedAlone) {
  for (Case each : {mlp_case(), transformer_case("transformer", true), wide_deep_case()}) {
    each.model.dropout = 0.3;
    Bench bench(each.model);
    const double first = bench.step(each.records, {.job_seed = 1, .step = 5, .rank = 0});
    const std::vector<float> gradients = bench.gradients();
    const double other_rank = bench.step(each.records, {.job_seed = 1, .step = 5, .rank = 1});
    EXPECT_NE(other_rank, first);
    EXPECT_EQ(bench.step(each.records, {.job_seed = 1, .step = 5, .rank = 0}), first);
    EXPECT_EQ(bench.gradients(), gradients);
    const Result<EngineOutput> evaluated = bench.evaluate(each.records);
    ASSERT_TRUE(evaluated);
    each.model.dropout = 0.0;
    EXPECT_EQ(Bench(each.model).evaluate(each.records)->loss_sum, evaluated->loss_sum) << "dropout is for steps only";
  }
}

TEST(AutogradModel, DropsOtherValuesInEachLayer) {
  // Two layers pass on 64 ones, each with its own mask. The output is 4 for each unit that both masks keep: about 16 of
  // them. If both layers had the same mask, it would keep about 32.
  ModelSection model = model_of("mlp");
  model.layers = {1, 64, 64, 1};
  model.loss = Loss::kMse;
  model.dropout = 0.5;
  Bench bench(model);
  std::fill(bench.parameters().begin(), bench.parameters().end(), 0.0F);
  const auto weight_of = [&](std::size_t variable) { return const_cast<float*>(bench.parameter(variable).data()); };
  std::fill_n(weight_of(1), 64, 1.0F);                                   // layer 0: bias
  for (std::size_t i = 0; i < 64; ++i) weight_of(2)[i * 64 + i] = 1.0F;  // layer 1: weight
  std::fill_n(weight_of(4), 64, 1.0F);                                   // layer 2: weight
  TestBatch records = TestBatch(1).add(std::vector<float>{0.0F}).add(std::vector<float>{0.0F});
  const double output = std::sqrt(bench.step(records, {.job_seed = 1, .step = 2, .rank = 3}));
  EXPECT_GT(output, 4.0 * 8);
  EXPECT_LT(output, 4.0 * 25);
}

TEST(AutogradModel, AttentionWithDropoutIsTheSameButForTheDropout) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  each.model.dropout = 1e-9;  // drops nothing
  Bench dropping(each.model);
  EXPECT_NEAR(bench.step(each.records), dropping.step(each.records), 1e-5);
  for (std::size_t i = 0; i < bench.gradients().size(); ++i)
    ASSERT_NEAR(bench.gradients()[i], dropping.gradients()[i], 1e-5) << i;
}

TEST(AutogradModel, ATokenDependsOnThoseBeforeItOnly) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  const auto outputs = [&] {
    const Result<EngineOutput> output = bench.computation().predict(each.records.batch());
    EXPECT_TRUE(output);
    return std::vector<float>(output->outputs.begin(), output->outputs.end());
  };
  const std::vector<float> before = outputs();
  ASSERT_EQ(before.size(), 3U * 5 * 11);  // records, context, vocabulary
  each.records.set(0, 3, std::uint8_t{10});
  const std::vector<float> after = outputs();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3 * 11, after.begin()));
  EXPECT_NE(before[3 * 11], after[3 * 11]);
  EXPECT_TRUE(std::equal(before.begin() + 5 * 11, before.end(), after.begin() + 5 * 11)) << "other records";
}

TEST(AutogradModel, PaddingChangesNothing) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  // Two records in one batch, and each of them alone. The loss is the mean over 3 + 1 tokens.
  const std::vector<std::uint8_t> tokens = {3, 1, 4, 1, 5, 9};
  TestBatch both = TestBatch(2).add(tokens).rows_end_at({4, 6});
  TestBatch first = TestBatch(1).add(std::vector<std::uint8_t>{3, 1, 4, 1}).rows_end_at({4});
  TestBatch second = TestBatch(1).add(std::vector<std::uint8_t>{5, 9}).rows_end_at({2});
  const double first_loss = bench.step(first);
  const std::vector<float> first_gradients = bench.gradients();
  const double second_loss = bench.step(second);
  const std::vector<float> second_gradients = bench.gradients();
  EXPECT_NEAR(bench.step(both), (3.0 * first_loss + second_loss) / 4.0, 1e-5);
  for (std::size_t i = 0; i < first_gradients.size(); ++i)
    ASSERT_NEAR(bench.gradients()[i], (3.0F * first_gradients[i] + second_gradients[i]) / 4.0F, 1e-5) << i;
  const Result<EngineOutput> evaluated = bench.evaluate(both);
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluated->metrics[1], 4.0) << "examples of the accuracy";
}

TEST(AutogradModel, ABatchWithoutASecondTokenHasNoLossAndNoGradient) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  TestBatch records = TestBatch(2).add(std::vector<std::uint8_t>{7}).rows_end_at({1, 1});
  EXPECT_EQ(bench.step(records), 0.0);
  for (const float gradient : bench.gradients()) ASSERT_EQ(gradient, 0.0F);
  EXPECT_EQ(bench.evaluate(records)->loss_sum, 0.0);
}

TEST(AutogradModel, PredictsNothingBehindARecord) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  TestBatch records = TestBatch(2).add(std::vector<std::uint8_t>{3, 1, 4, 1, 5, 9, 2, 6}).rows_end_at({2, 8});
  const Result<EngineOutput> output = bench.computation().predict(records.batch());
  ASSERT_TRUE(output) << output.error().message;
  ASSERT_EQ(output->outputs.size(), 2U * 5 * 11);
  for (std::size_t i = 0; i < output->outputs.size(); ++i)
    ASSERT_EQ(std::isnan(output->outputs[i]), i >= 2 * 11 && i < 5 * 11) << i;
}

TEST(AutogradModel, CountsTheMetricsOfATransformerByTokens) {
  Case each = transformer_case("transformer", true);
  Bench bench(each.model);
  const Result<EngineOutput> evaluated = bench.evaluate(each.records);
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluated->examples, 3U);
  const std::vector<MetricValue> values = metric_values(bench.spec().metrics, evaluated->metrics);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(evaluated->metrics[1], 15.0) << "examples of the accuracy";
  EXPECT_EQ(values[1].name, "perplexity");
  EXPECT_NEAR(values[1].value, std::exp(evaluated->loss_sum / 3.0), 1e-4);
}

TEST(AutogradModel, TakesOnlyNumbersOrOnlyCategories) {
  ModelSection model = wide_deep_case().model;
  model.dropout = 0.1;
  const std::vector<float> targets = integers<float>(4, 2, 4);
  model.wide_deep = {.numeric = 3, .categories = {}, .embedding = 7, .hidden = {}, .outputs = 2};
  Bench numbers(model);
  TestBatch of_numbers = TestBatch(2).add(floats(1, 6)).add(targets);
  EXPECT_TRUE(std::isfinite(numbers.step(of_numbers)));
  model.wide_deep = {.numeric = 0, .categories = {4}, .embedding = 7, .hidden = {5, 3}, .outputs = 2};
  Bench categories(model);
  TestBatch of_categories = TestBatch(2).add(std::vector<std::int64_t>{0, 3}).add(targets);
  EXPECT_TRUE(std::isfinite(categories.step(of_categories)));
}

TEST(AutogradModel, PredictsWithoutLabels) {
  Case each = mlp_case();
  Bench bench(each.model);
  TestBatch records = TestBatch(6).add(floats(1, 42)).add(std::vector<std::int64_t>());
  const Result<EngineOutput> output = bench.computation().predict(records.batch());
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs.size(), 24U);
}

TEST(AutogradModel, ChangesNoParameterAndNoStateWhenItEvaluates) {
  Case each = resnet_case("resnet18", 18, Stem::kCifar, 2, 16);
  Bench bench(each.model);
  const std::vector<float> parameters = bench.parameters();
  std::fill(bench.gradients().begin(), bench.gradients().end(), 3.0F);
  ASSERT_TRUE(bench.evaluate(each.records));
  EXPECT_EQ(bench.parameters(), parameters);
  EXPECT_TRUE(std::ranges::all_of(bench.gradients(), [](float value) { return value == 3.0F; }));
}

TEST(AutogradModel, AnnouncesEachLayerBeforeTheOneBelow) {
  Case each = mlp_case();
  Bench bench(each.model);
  bench.step(each.records);
  EXPECT_EQ(bench.ranges().front().first, 0U);
  EXPECT_GE(bench.ranges().size(), 2U) << "the last layer is announced before the first one is computed";
  EXPECT_LE(bench.ranges().front().second, 4U + 9 * 4) << "bias and weight of the last layer";
}

// `message` must be part of the error.
void expect_bad(const ModelSection& model, TestBatch records, const std::string& message) {
  Bench bench(model);
  for (const Result<EngineOutput>& output :
       {bench.computation().step(records.batch(), {}, {}), bench.computation().evaluate(records.batch())}) {
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, ErrorCode::kData);
    EXPECT_THAT(output.error().message, HasSubstr(message));
  }
}

TEST(AutogradModel, RefusesValuesThatItCannotTake) {
  Case tokens = transformer_case("transformer", true);
  tokens.records.set(0, 7, std::uint8_t{11});
  expect_bad(tokens.model, tokens.records, "a record has 11 in the column \"tokens\"; the model takes 0 to 10");

  const TestBatch longer = TestBatch(1).add(std::vector<std::uint8_t>(7)).rows_end_at({7});
  expect_bad(tokens.model, longer, "a record has more than 6 values in the column \"tokens\"");
  const TestBatch other = TestBatch(2).add(std::vector<std::uint8_t>(7)).rows_end_at({3, 6});
  expect_bad(tokens.model, other, "a batch has 7 bytes in the column \"tokens\", but its records have other lengths");

  Case labels = mlp_case();
  labels.records.set(1, 2, std::int64_t{-100});
  expect_bad(labels.model, labels.records, "a record has -100 in the column \"labels\"; the model takes 0 to 3");

  for (const float user : {6.0F, -1.0F, 0.5F, NAN, INFINITY}) {
    Case factors = test::matrix_factorization_case();
    factors.records.set(0, 0, user);
    expect_bad(factors.model, factors.records, "a record has the user ");
  }
  Case factors = test::matrix_factorization_case();
  factors.records.set(0, 0, 24.0F);
  expect_bad(factors.model, factors.records,
             "a record has the user 24; model.matrix_factorization.users = 6 allows whole numbers from 0 to 5");

  Case categories = wide_deep_case();
  categories.records.set(1, 0, std::int64_t{4});  // the second category column would take it
  expect_bad(categories.model, categories.records,
             "a record has 4 in category column 0; model.wide_deep.categories[0] = 4 allows 0 to 3");

  Case inputs = mlp_case();
  expect_bad(inputs.model, TestBatch(6).add(floats(1, 41)).add(integers<std::int64_t>(2, 4, 6)),
             "a batch has 164 bytes in the column \"inputs\"; the model expects 168");
}

}  // namespace
}  // namespace disttrain::workerd
