// Trainers that behave, with the Python package disttrain.
#include "engine/trainer/trainer_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <utility>

#include "common/doubles.h"
#include "tests/engine/trainer/trainer_fixture.h"

namespace disttrain::workerd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A linear model: the outputs are record * w + b, with w and b of two elements. The loss of a record is the sum of its
// outputs. So the gradient of w is the mean of the records, and that of b is 1. The state counts the records.
constexpr char kLinear[] = R"(
import disttrain, numpy as np
job = disttrain.init(metrics=["accuracy"])
job.wrap({"w": np.array([[1.0, 2.0]], "f4"), "b": np.float32([3.0, 4.0])}, state={"seen": np.float32([10.0])})
@job.on_evaluate
def evaluate(x):
    return {"loss": (x * job.variables["w"] + job.variables["b"]).sum(axis=1).mean(), "accuracy": 0.5}
@job.on_predict
def predict(x):
    return x * job.variables["w"] + job.variables["b"]
for x in job.batches(range(100), collate=lambda records: np.float32(records)[:, None]):
    print("step", job.step_number, "rank", job.rank, "of", job.size, x.ravel().tolist())
    gradients = {"w": np.full((1, 2), x.mean()), "b": np.ones(2)}
    job.push_pull(gradients, loss=evaluate(x)["loss"], state={"seen": job.state["seen"] + len(x)}, accuracy=0.25)
    job.checkpoint()
print("the loop is over")
)";

class TrainerEngineTest : public testing::Test, public TrainerFixture {
 protected:
  void SetUp() override {
    if (std::string(DISTTRAIN_PYTHON).empty()) GTEST_SKIP() << "no Python with NumPy: run tools/setup";
  }
  void set_parameters(std::vector<float> values) { std::ranges::copy(values, parameters->floats().begin()); }
};

TEST_F(TrainerEngineTest, DescribesTheScriptsModel) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  const ModelSpec& spec = engine->describe();
  ASSERT_EQ(spec.variables.size(), 3U);
  EXPECT_EQ(spec.variables[0].name, "w");
  EXPECT_THAT(spec.variables[0].shape, ElementsAre(1, 2));
  EXPECT_EQ(spec.variables[1].name, "b");
  EXPECT_EQ(spec.variables[2].kind, VariableKind::kState);
  ASSERT_EQ(spec.columns.size(), 1U);
  EXPECT_EQ(spec.columns[0].name, "record");
  ASSERT_EQ(spec.metrics.size(), 1U);
  EXPECT_EQ(spec.metrics[0].name, "accuracy");
  EXPECT_TRUE(spec.programs.evaluates && spec.programs.predicts && spec.brings_values);
  EXPECT_EQ(engine->model().records, 100U);
}

TEST_F(TrainerEngineTest, StepsWriteGradientsAndNewStateInPlace) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  // The flat arrays begin with the last variable: seen, b, w.
  EXPECT_THAT(engine->initial_values().value(), ElementsAre(10, 3, 4, 1, 2));
  set_parameters({20, 1, 1, 2, 3});
  auto result = run(Program::kStep, {4, 6}, 17);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(gradients->floats(), ElementsAre(22, 1, 1, 5, 5));
  EXPECT_EQ(result->loss_sum, (4 * 5 + 2) + (6 * 5 + 2));
  EXPECT_EQ(result->examples, 2U);
  EXPECT_THAT(result->metrics, ElementsAre(0.5, 2));
  EXPECT_THAT(ranges, ElementsAre(std::pair(0UL, 5UL)));
  set_parameters({20, 0, 0, 1, 1});
  result = run(Program::kStep, {1}, 18);
  EXPECT_EQ(result->loss_sum, 2);
  EXPECT_THAT(lines, ElementsAre("step 17 rank 2 of 3 [4.0, 6.0]", "step 18 rank 2 of 3 [1.0]"));
  EXPECT_EQ(checkpoints, 1U);  // that of the second step comes with the next message
}

TEST_F(TrainerEngineTest, ArraysOfFloat64StayFloat64) {
  write(R"(
import disttrain, numpy as np
job = disttrain.init(metrics=[])
job.wrap({"narrow": np.full(3, 0.1, "f4"), "wide": np.full(2, 0.1)}, state={"seen": np.full(1, 0.1)})
for x in job.batches(range(100)):
    third = {name: value / 3 for name, value in job.variables.items()}
    job.push_pull(third, loss=0, state={"seen": job.state["seen"] + 0.1})
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const std::vector<VariableSpec>& variables = layout.model.variables;
  EXPECT_EQ(variables[0].dtype, DType::kFloat32);
  EXPECT_EQ(variables[1].dtype, DType::kFloat64);
  EXPECT_EQ(variables[2].dtype, DType::kFloat64);
  // The flat arrays begin with seen and wide, and end with narrow.
  const std::vector<float> initial = engine->initial_values().value();
  ASSERT_EQ(initial.size(), 9U);
  EXPECT_THAT(as_doubles(std::span(initial).first(6)), testing::Each(0.1));
  EXPECT_THAT(std::span(initial).subspan(6), testing::Each(0.1F));
  std::ranges::copy(initial, parameters->floats().begin());
  const auto result = run(Program::kStep, {4, 6}, 17);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(as_doubles(gradients->floats().first(6)), ElementsAre(0.1 + 0.1, 0.1 / 3, 0.1 / 3));
  EXPECT_THAT(gradients->floats().subspan(6), testing::Each(0.1F / 3));
}

TEST_F(TrainerEngineTest, EvaluatesAndPredictsBetweenSteps) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  set_parameters({0, 1, 2, 10, 20});
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  const auto evaluated = run(Program::kEvaluate, {1, 2, 3});
  ASSERT_TRUE(evaluated.has_value()) << evaluated.error().message;
  EXPECT_EQ(evaluated->loss_sum, 3 * 3 + 30 * (1 + 2 + 3));
  EXPECT_THAT(evaluated->metrics, ElementsAre(1.5, 3));
  const auto predicted = run(Program::kPredict, {1, 2});
  ASSERT_TRUE(predicted.has_value()) << predicted.error().message;
  EXPECT_THAT(predicted->outputs, ElementsAre(11, 22, 21, 42));
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
}

TEST_F(TrainerEngineTest, ABatchWithoutRecordsHasNoGradientAndKeepsState) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  set_parameters({5, 1, 2, 10, 20});
  std::ranges::fill(gradients->floats(), 9.0F);
  const auto result = run(Program::kStep, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(gradients->floats(), ElementsAre(5, 0, 0, 0, 0));
  EXPECT_EQ(result->loss_sum, 0);
  EXPECT_TRUE(lines.empty());
}

// A sink that kills the trainer when a step is announced, and lets the loop see it.
class TrainerThatDies : public TrainerEngineTest {
 public:
  void ready(std::uint64_t begin, std::uint64_t end) override {
    TrainerEngineTest::ready(begin, end);
    if (trainer_ == 0) return;
    ASSERT_EQ(::kill(std::exchange(trainer_, 0), SIGKILL), 0);
    while (!output) ASSERT_GT(loop.run_one_for(std::chrono::seconds(60)), 0U);
  }

 protected:
  pid_t trainer_ = 0;  // 0: nothing is killed
};

TEST_F(TrainerThatDies, DuringABatchWithoutRecordsIsItsError) {
  write(std::string("import os\nprint('pid', os.getpid(), flush=True)\n") + kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  ASSERT_FALSE(lines.empty());
  ASSERT_TRUE(lines[0].starts_with("pid ")) << lines[0];
  trainer_ = std::stoi(lines[0].substr(4));
  const auto result = run(Program::kStep, {}, 2);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("killed by signal 9"));
}

TEST_F(TrainerEngineTest, TheNextBatchIsReadBeforeItsStepAndIsntUsedForAnother) {
  write(R"(
import disttrain, numpy as np
class Records:
    def __len__(self): return 10
    def __getitem__(self, i):
        print("record", i)
        return float(i)
job = disttrain.init(metrics=[])
job.wrap({"w": np.zeros(1)})
for batch in job.batches(Records()):
    print("step", job.step_number, batch.x.tolist())
    job.push_pull({"w": np.ones(1)}, loss=0)
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}, 1, {2, 3}).has_value());
  ASSERT_TRUE(run(Program::kStep, {2, 3}, 2, {4}).has_value());
  ASSERT_TRUE(run(Program::kStep, {5}, 3).has_value());
  EXPECT_THAT(lines, ElementsAre("record 1", "step 1 [1.0]", "record 2", "record 3", "step 2 [2.0, 3.0]", "record 4",
                                 "record 5", "step 3 [5.0]"));
}

TEST_F(TrainerEngineTest, OtherArraysAndLayoutsMayComeBetweenSteps) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  set_parameters({0, 1, 2, 10, 20});
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  // Other arrays, and the variables in their own order.
  auto old_parameters = std::move(parameters);
  auto old_gradients = std::move(gradients);
  ASSERT_TRUE(open().has_value());
  layout.variable_begins = {0, 2, 4};
  ASSERT_TRUE(engine->open(layout, parameters->floats(), gradients->floats()).has_value());
  old_parameters.reset();
  old_gradients.reset();
  set_parameters({10, 20, 1, 2, 0});
  const auto result = run(Program::kStep, {3});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->loss_sum, 31 + 62);
  EXPECT_THAT(gradients->floats(), ElementsAre(3, 3, 1, 1, 1));
}

// The range of each `ready` is passed on. The fixture lets the loop run meanwhile, and the next message may be there.
TEST_F(TrainerEngineTest, RangesMayBeAnnouncedEarly) {
  write_raw(R"(
describe(metrics=[])
receive()
number = receive()["number"]
for end in (1, 4): send(type="ready", number=number, end=end)
send(type="finished", number=number, loss_sum=2.5, metrics=[])
signal.pause()
)");
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  const auto result = run(Program::kStep, {1});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->loss_sum, 2.5);
  EXPECT_THAT(ranges, ElementsAre(std::pair(0UL, 1UL), std::pair(1UL, 4UL), std::pair(4UL, 6UL)));
}

TEST_F(TrainerEngineTest, TheSinkMayNotCallTheEngine) {
  class AbortingSink final : public EngineSink {
   public:
    explicit AbortingSink(Engine& engine) : engine_(engine) {}
    void ready(std::uint64_t, std::uint64_t) override { engine_.abort(); }
    void finished(const Result<EngineOutput>&) override { engine_.abort(); }

   private:
    Engine& engine_;
  };
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  AbortingSink sink(*engine);
  EXPECT_DEATH(engine->start({Program::kStep, Batch{}, StepSeed{}}, sink), "!is_calling_sink_");
  EXPECT_DEATH(engine->start({Program::kEvaluate, Batch{}, StepSeed{}}, sink), "!is_calling_sink_");
}

TEST_F(TrainerEngineTest, TheLoopEndsWhenTheJobIsOver) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  ASSERT_TRUE(run(Program::kStep, {1}).has_value());
  engine.reset();
  EXPECT_THAT(lines, ElementsAre("step 1 rank 2 of 3 [1.0]", "the loop is over"));
}

TEST_F(TrainerEngineTest, AnAbortedStepLeavesTheTrainerUsable) {
  write(kLinear);
  ASSERT_TRUE(make().has_value());
  ASSERT_TRUE(open().has_value());
  set_parameters({0, 1, 2, 10, 20});
  const std::int64_t record = 1;
  const ColumnValues column{std::as_bytes(std::span(&record, 1)), {}};
  engine->start({Program::kStep, Batch{1, std::span(&column, 1)}, StepSeed{}}, *this);
  engine->abort();
  loop.poll();
  EXPECT_FALSE(output.has_value());
  const auto result = run(Program::kStep, {2}, 5);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->loss_sum, 3 + 60);
}

}  // namespace
}  // namespace disttrain::workerd::test
