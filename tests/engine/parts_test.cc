// Computes a step in parts with a real engine (workerd/step_parts.h).
#include "workerd/step_parts.h"

#include <gtest/gtest.h>

#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

// 100 records in parts of 30: the last part is smaller.
TEST(PartsOfAStep, GiveTheGradientsOfOneLargeBatch) {
  ModelSection model;
  model.builtin = "mlp";
  model.layers = {9, 20, 5};
  test::Loop loop;
  const auto engine = make_compute_engine(make_torch_model(model, 1).value(), loop.post());
  const Layout layout = test::reversed_layout(engine->describe());
  std::vector<float> parameters = test::random_floats(element_count(layout.model), 0.3F, 1);
  std::vector<float> gradients(parameters.size());
  ASSERT_TRUE(engine->open(layout, parameters, gradients));
  const std::vector<float> inputs = test::random_floats(100 * 9, 1.0F, 2);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 100; ++i) labels.push_back(i * 7 % 5);
  const Records records{100, inputs, labels, {}};

  const float loss = test::run(*engine, loop, Program::kStep, records).loss();
  const std::vector<float> whole = gradients;

  struct Sink final : EngineSink {
    void ready(std::uint64_t begin, std::uint64_t end) override { parts->add(*parameters, *gradients, begin, end); }
    void finished(const Result<EngineOutput>& output) override {
      loss_sum += output->loss_sum;
      is_finished = true;
    }
    StepParts* parts = nullptr;
    std::vector<float>* parameters = nullptr;
    std::vector<float>* gradients = nullptr;
    double loss_sum = 0.0;
    bool is_finished = false;
  } sink;
  StepParts parts(layout, 30);
  sink.parts = &parts;
  sink.parameters = &parameters;
  sink.gradients = &gradients;
  const test::Columns columns(records);
  parts.begin(columns.batch(), parameters);
  do {
    sink.is_finished = false;
    engine->start(EngineInput{Program::kStep, parts.next(parameters, gradients), {}}, sink);
    while (!sink.is_finished) loop.run_one();
  } while (!parts.is_last());

  EXPECT_EQ(parts.index(), 3U);
  EXPECT_NEAR(sink.loss_sum / 100, loss, 1e-5);
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(gradients[i], whole[i], 1e-6) << "element " << i;
}

}  // namespace
}  // namespace disttrain::workerd
