// An engine prepares the batch of its next step (Engine::prepare()).
#include <gtest/gtest.h>

#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

constexpr std::uint64_t kRecords = 32;
constexpr std::uint64_t kRecordInputs = 40;

// One of four inputs isn't 0, so that the engine looks for them.
std::vector<float> sparse_inputs(std::uint64_t seed) {
  std::vector<float> inputs = test::random_floats(kRecords * kRecordInputs, 1.0F, seed);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if ((i + seed) % 4 != 0) inputs[i] = 0.0F;
  return inputs;
}

class PrepareTest : public testing::Test {
 protected:
  PrepareTest() {
    ModelSection model;
    model.builtin = "mlp";
    model.layers = {kRecordInputs, 30, 5};
    engine_ = make_compute_engine(make_torch_model(model, 1).value(), loop_.post());
    const Layout layout = test::reversed_layout(engine_->describe());
    const std::uint64_t words = element_count(layout.model);
    parameters_ = test::random_floats(words, 0.3F, 1);
    gradients_.resize(words);
    EXPECT_TRUE(engine_->open(layout, parameters_, gradients_));
    for (std::uint64_t i = 0; i < kRecords; ++i) labels_.push_back(static_cast<std::int64_t>(i % 5));
  }

  Records records(const std::vector<float>& inputs) const { return {kRecords, inputs, labels_, {}}; }

  void prepare(const std::vector<float>& inputs) {
    const test::Columns columns(records(inputs));
    engine_->prepare(columns.batch());
  }

  // Returns the gradients.
  std::vector<float> step(const std::vector<float>& inputs, bool is_prepared) {
    struct Sink final : EngineSink {
      void ready(std::uint64_t, std::uint64_t) override {}
      void finished(const Result<EngineOutput>& output) override {
        EXPECT_TRUE(output);
        is_finished = true;
      }
      bool is_finished = false;
    } sink;
    const test::Columns columns(records(inputs));
    engine_->start({.program = Program::kStep, .batch = columns.batch(), .seed = {}, .is_prepared = is_prepared}, sink);
    while (!sink.is_finished) loop_.run_one();
    return gradients_;
  }

  test::Loop loop_;
  std::unique_ptr<Engine> engine_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<std::int64_t> labels_;
  const std::vector<float> first_ = sparse_inputs(2);
  const std::vector<float> second_ = sparse_inputs(3);
};

TEST_F(PrepareTest, GradientsHaveTheSameBits) {
  const std::vector<float> of_first = step(first_, false);
  const std::vector<float> of_second = step(second_, false);
  ASSERT_NE(of_first, of_second);
  prepare(first_);
  EXPECT_EQ(step(first_, true), of_first);
  prepare(second_);
  EXPECT_EQ(step(second_, true), of_second);
}

TEST_F(PrepareTest, StepWithAnotherBatchUsesItsOwn) {
  const std::vector<float> of_second = step(second_, false);
  prepare(first_);
  EXPECT_EQ(step(second_, false), of_second);
  EXPECT_EQ(step(second_, true), of_second) << "nothing has been prepared since";
}

TEST_F(PrepareTest, EvaluationInBetweenUsesItsOwnBatch) {
  const std::vector<float> of_first = step(first_, false);
  const double loss = test::run(*engine_, loop_, Program::kEvaluate, records(second_)).output->loss_sum;
  prepare(first_);
  EXPECT_EQ(test::run(*engine_, loop_, Program::kEvaluate, records(second_)).output->loss_sum, loss);
  EXPECT_EQ(step(first_, true), of_first);
}

}  // namespace
}  // namespace disttrain::workerd
