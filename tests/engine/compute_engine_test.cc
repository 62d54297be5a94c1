#include "engine/compute_engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

constexpr std::uint64_t kWords = 6;

// A model whose step announces a range of two words at a time, and calls `between` after each range.
class RangeByRange final : public Computation {
 public:
  explicit RangeByRange(std::function<void()> between) : between_(std::move(between)) {
    spec_.variables.push_back({"v", {kWords}, VariableKind::kTrainable, {InitializerKind::kZeros, 0.0}, 1, 1});
    spec_.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {1}});
    spec_.columns.push_back({.name = "labels", .dtype = DType::kInt64, .shape = {}});
  }

  const ModelSpec& describe() const override { return spec_; }
  Status takes(Program, std::uint64_t) const override { return {}; }
  Status open(const Layout&, std::span<float>, std::span<float>) override { return {}; }
  Result<std::vector<float>> initial_values() override { return std::vector<float>(); }
  Result<EngineOutput> step(const Batch& batch, const StepSeed&, const RangeReady& ready) override {
    for (std::uint64_t begin = 0; begin < kWords; begin += 2) {
      ready(begin, begin + 2);
      between_();
    }
    return EngineOutput{.loss_sum = 7.0, .examples = batch.examples};
  }
  Result<EngineOutput> evaluate(const Batch& batch) override { return EngineOutput{.examples = batch.examples}; }
  Result<EngineOutput> predict(const Batch& batch) override { return EngineOutput{.examples = batch.examples}; }

 private:
  const std::function<void()> between_;
  ModelSpec spec_;
};

class RecordingSink final : public EngineSink {
 public:
  void ready(std::uint64_t begin, std::uint64_t end) override {
    EXPECT_FALSE(is_finished);
    ranges.emplace_back(begin, end);
    if (on_ready) on_ready();
  }
  void finished(const Result<EngineOutput>& output) override {
    EXPECT_FALSE(is_finished);
    EXPECT_TRUE(output);
    is_finished = true;
    if (on_finished) on_finished();
  }

  std::function<void()> on_ready, on_finished;
  test::Ranges ranges;
  bool is_finished = false;
};

class ComputeEngineTest : public testing::Test {
 protected:
  void open(
      FirstComputation first, const std::function<void()>& between = [] {}) {
    engine_ = make_compute_engine(std::make_unique<RangeByRange>(between), loop_.post(), first);
    ASSERT_TRUE(engine_->open(test::reversed_layout(engine_->describe()), parameters_, gradients_));
  }
  void start() { engine_->start(EngineInput{Program::kStep, columns_.batch(), {}}, sink_); }
  void run() {
    start();
    while (!sink_.is_finished) loop_.run_one();
  }

  test::Loop loop_;
  std::vector<float> parameters_ = std::vector<float>(kWords);
  std::vector<float> gradients_ = std::vector<float>(kWords);
  std::vector<float> inputs_ = {1.0F};
  std::vector<std::int64_t> labels_ = {0};
  test::Columns columns_{Records{1, inputs_, labels_, {}}};
  RecordingSink sink_;
  std::unique_ptr<Engine> engine_;
};

// The first call of ready() doesn't return before the thread has finished, and runs the loop meanwhile.
TEST_F(ComputeEngineTest, LoopThatRunsInReadyGetsTheRestOfTheComputation) {
  std::promise<void> go_on;
  open(FirstComputation::kLong, [future = go_on.get_future().share()] { future.wait(); });
  sink_.on_ready = [this, &go_on] {
    if (sink_.ranges.size() > 1) return;
    go_on.set_value();
    while (!sink_.is_finished) loop_.run_one();
  };
  run();
  EXPECT_EQ(sink_.ranges.front(), (std::pair<std::uint64_t, std::uint64_t>(0, 2)));
  EXPECT_EQ(sink_.ranges.back().second, kWords);
}

TEST_F(ComputeEngineTest, AbortedComputationIsNeverDelivered) {
  open(FirstComputation::kLong);
  start();
  engine_->abort();
  start();
  while (!sink_.is_finished) loop_.run_one();
  EXPECT_EQ(sink_.ranges.back().second, kWords);
}

using ComputeEngineDeathTest = ComputeEngineTest;

TEST_F(ComputeEngineDeathTest, SinkMayNotCallTheEngine) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const FirstComputation first : {FirstComputation::kShort, FirstComputation::kLong}) {
    open(first);
    sink_.on_ready = [this] { engine_->abort(); };
    EXPECT_DEATH(run(), "!is_calling_sink_");
    sink_.on_ready = [this] { (void)engine_->open({}, parameters_, gradients_); };
    EXPECT_DEATH(run(), "!is_calling_sink_");
    sink_.on_ready = [this] { engine_.reset(); };
    EXPECT_DEATH(run(), "!is_calling_sink_");
    sink_.on_ready = nullptr;
    sink_.on_finished = [this] { start(); };
    EXPECT_DEATH(run(), "!is_calling_sink_");
    sink_.on_finished = nullptr;
  }
}

TEST_F(ComputeEngineDeathTest, NoOtherCallsWhileTheThreadComputes) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  std::promise<void> go_on;
  open(FirstComputation::kLong, [future = go_on.get_future().share()] { future.wait(); });
  start();
  EXPECT_DEATH((void)engine_->open({}, parameters_, gradients_), "sink_ == nullptr");
  EXPECT_DEATH((void)engine_->initial_values(), "sink_ == nullptr");
  EXPECT_DEATH(start(), "sink_ == nullptr");
  go_on.set_value();
  while (!sink_.is_finished) loop_.run_one();
  EXPECT_TRUE(engine_->open(test::reversed_layout(engine_->describe()), parameters_, gradients_));
}

}  // namespace
}  // namespace disttrain::workerd
