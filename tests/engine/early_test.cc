// A real engine computes a step while its parameters arrive (EngineInput::gate, workerd/arrivals.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/dense.h"
#include "engine/sparse_rows.h"
#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"
#include "workerd/arrivals.h"

namespace disttrain::workerd {
namespace {

constexpr std::uint64_t kExamples = 9;

// The second layer's weight has several buckets, and some buckets have words of two variables.
class EarlyTest : public testing::Test {
 protected:
  EarlyTest() {
    ModelSection model;
    model.builtin = "mlp";
    model.layers = {40, 300, 70, 5};
    engine_ = make_compute_engine(make_torch_model(model, 1).value(), loop_.post());
    layout_ = test::reversed_layout(engine_->describe());
    const std::uint64_t words = element_count(layout_.model);
    layout_.buckets.clear();
    for (std::uint64_t begin = 0; begin < words; begin += kBucketWords)
      layout_.buckets.push_back({ShardId(0), begin, begin, std::min(kBucketWords, words - begin)});
    values_ = test::random_floats(words, 0.3F, 1);
    inputs_ = test::random_floats(kExamples * 40, 1.0F, 2);
    for (std::uint64_t i = 0; i < kExamples; ++i) labels_.push_back(static_cast<std::int64_t>(i % 5));
  }

  Records records() const { return {kExamples, inputs_, labels_, {}}; }

  static constexpr std::uint64_t kBucketWords = 1000;
  test::Loop loop_;
  std::unique_ptr<Engine> engine_;
  Layout layout_;
  std::vector<float> values_;
  std::vector<float> inputs_;
  std::vector<std::int64_t> labels_;
};

struct EarlySink final : EngineSink {
  void ready(std::uint64_t, std::uint64_t) override {
    EXPECT_TRUE(arrivals->all_here()) << "gradients before all parameters were there";
  }
  void finished(const Result<EngineOutput>& output) override { is_finished = output.has_value(); }
  const Arrivals* arrivals = nullptr;
  bool is_finished = false;
};

TEST_F(EarlyTest, TheGradientsHaveTheSameBitsInWhateverOrderTheParametersArrive) {
  ASSERT_TRUE(engine_->begins_early());
  std::vector<float> parameters = values_;
  std::vector<float> expected(values_.size());
  ASSERT_TRUE(engine_->open(layout_, parameters, expected));
  ASSERT_TRUE(test::run(*engine_, loop_, Program::kStep, records()).output);

  std::vector<float> gradients(values_.size());
  ASSERT_TRUE(engine_->open(layout_, parameters, gradients));
  const test::Columns columns(records());
  std::vector<std::uint32_t> order(layout_.buckets.size());
  for (std::uint32_t b = 0; b < order.size(); ++b) order[b] = b;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    std::fill(parameters.begin(), parameters.end(), NAN);
    std::fill(gradients.begin(), gradients.end(), NAN);
    Arrivals arrivals(layout_);
    arrivals.expect_all(ShardId(0));
    arrivals.open();
    EarlySink sink;
    sink.arrivals = &arrivals;
    engine_->start({.program = Program::kStep, .batch = columns.batch(), .seed = {}, .gate = &arrivals}, sink);
    for (const std::uint32_t b : order) {
      const Bucket& bucket = layout_.buckets[b];
      std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin), bucket.words,
                  parameters.begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin));
      arrivals.arrived(BucketId(b));
    }
    while (!sink.is_finished) loop_.run_one();
    ASSERT_EQ(gradients, expected) << "seed " << seed;
  }
}

TEST_F(EarlyTest, AbortEndsAComputationWhoseParametersDoNotCome) {
  std::vector<float> parameters = values_;
  std::vector<float> gradients(values_.size(), -1.0F);
  ASSERT_TRUE(engine_->open(layout_, parameters, gradients));
  const test::Columns columns(records());
  Arrivals arrivals(layout_);
  arrivals.expect(BucketId(3));
  arrivals.open();
  EarlySink sink;
  engine_->start({.program = Program::kStep, .batch = columns.batch(), .seed = {}, .gate = &arrivals}, sink);
  arrivals.close();
  engine_->abort();
  EXPECT_FALSE(sink.is_finished);
  EXPECT_EQ(gradients, std::vector<float>(values_.size(), -1.0F));
  // The engine can be used again.
  arrivals.arrived(BucketId(3));
  EXPECT_TRUE(test::run(*engine_, loop_, Program::kStep, records()).output);
}

// The gradient is finite, but the loss is infinite as a float32. The worker must send nothing of such a step.
TEST(AnnouncedGradients, AreNoneIfTheLossIsInfinite) {
  ModelSection model;
  model.builtin = "mlp";
  model.layers = {4, 3, 1};
  model.loss = Loss::kMse;
  test::Loop loop;
  const std::unique_ptr<Engine> engine = make_compute_engine(make_torch_model(model, 1).value(), loop.post());
  const Layout layout = test::reversed_layout(engine->describe());
  std::vector<float> parameters(element_count(layout.model), 0.1F);
  std::vector<float> gradients(parameters.size());
  ASSERT_TRUE(engine->open(layout, parameters, gradients));
  const std::vector<float> inputs(2 * 4, 1.0F);
  for (const float target : {1.0F, 2e20F}) {
    const std::vector<float> targets = {0.0F, target};
    const test::Ran ran = test::run(*engine, loop, Program::kStep, {2, inputs, {}, targets});
    ASSERT_TRUE(ran.output);
    EXPECT_EQ(std::isfinite(ran.loss()), target == 1.0F);
    EXPECT_TRUE(std::all_of(gradients.begin(), gradients.end(), [](float g) { return std::isfinite(g); }));
    EXPECT_EQ(ran.ranges.empty(), target != 1.0F);
  }
}

TEST(DenseGradients, HaveTheBitsOfTheTwoFunctions) {
  for (const DenseShape shape : {DenseShape{10, 300, 130}, DenseShape{100, 40, 20}, DenseShape{12, 5, 3}}) {
    const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
    const auto x = test::random_floats(size(shape.rows, shape.inputs), 1.0F, 1);
    const auto d_y = test::random_floats(size(shape.rows, shape.outputs), 1.0F, 2);
    const auto w = test::random_floats(size(shape.inputs, shape.outputs), 1.0F, 3);
    std::vector<float> d_x(x.size()), d_w(w.size()), d_x_both(x.size()), d_w_both(w.size());
    std::uint64_t final = 0;
    const ElementsFinal is_final = [&final](std::uint64_t elements) { final = elements; };
    dense_input_gradient(shape, d_y.data(), w.data(), d_x.data());
    dense_weight_gradient(shape, x.data(), nullptr, d_y.data(), d_w.data(), is_final);
    final = 0;
    dense_gradients(shape, x.data(), d_y.data(), w.data(), d_x_both.data(), d_w_both.data(), is_final);
    EXPECT_EQ(final, w.size());
    EXPECT_EQ(d_x_both, d_x);
    EXPECT_EQ(d_w_both, d_w);
  }
}

// On a machine without our kernels, a dense product computes the whole gradient at once.
TEST(DenseGradients, OfSparseInputsBecomeFinalInPieces) {
  constexpr DenseShape kShape{100, 784, 100};
  std::vector<float> x(kShape.rows * kShape.inputs, 0.0F);
  for (std::size_t i = 0; i < x.size(); i += 7) x[i] = 1.0F;
  const auto d_y = test::random_floats(kShape.rows * kShape.outputs, 1.0F, 2);
  std::vector<float> d_w(kShape.inputs * kShape.outputs);
  SparseRows rows;
  const SparseView* sparse = rows.find(x, kShape);
  std::vector<std::uint64_t> ends;
  dense_weight_gradient(kShape, x.data(), sparse, d_y.data(), d_w.data(),
                        [&ends](std::uint64_t elements) { ends.push_back(elements); });
  EXPECT_EQ(ends.back(), d_w.size());
  if (machine_kernels() == nullptr) return;
  ASSERT_NE(sparse, nullptr);
  EXPECT_LE(ends.front(), 16u * 1024) << "the smallest buckets have 32 Ki words";
}

}  // namespace
}  // namespace disttrain::workerd
