#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/fake_engine.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd {
namespace {

class FakeEngineTest : public testing::Test {
 protected:
  void open(const FakeModel& model) {
    engine_ = make_fake_engine(model);
    const Layout layout = test::reversed_layout(engine_->describe());
    parameters_.assign(element_count(layout.model), 0.0F);
    gradients_.assign(parameters_.size(), NAN);
    ASSERT_TRUE(engine_->open(layout, parameters_, gradients_).has_value());
  }

  test::Ran run(Program program = Program::kStep) {
    return test::run(*engine_, loop_, program, {labels_.size(), inputs_, labels_, {}});
  }

  test::Loop loop_;
  std::unique_ptr<Engine> engine_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> inputs_ = {5.0F, 7.0F};
  std::vector<std::int64_t> labels_ = {1, 2};
};

TEST_F(FakeEngineTest, GradientIsCoefficientTimesTheSumOfTheValues) {
  open({{2, 3}});
  EXPECT_FLOAT_EQ(run().loss(), 7.5F);
  EXPECT_EQ(gradients_, (std::vector<float>{30, 45, 15, 15, 30}));  // v1, then v0
}

TEST_F(FakeEngineTest, ReadsParametersWhenAsked) {
  open({{2}, 1, 10, true});
  parameters_ = {-4.0F, 5.0F};
  ASSERT_TRUE(run().output);
  EXPECT_EQ(gradients_, (std::vector<float>{15 + 2, 30 + 2}));
}

TEST_F(FakeEngineTest, AnnouncesVariablesFromTheLastToTheFirst) {
  open({{2, 3}});
  EXPECT_EQ(run().ranges, (test::Ranges{{0, 3}, {3, 5}}));
}

TEST_F(FakeEngineTest, EmptyBatchGivesZeroGradientsAndNoLoss) {
  open({{2}, 1, 10, true});
  parameters_ = {1.0F, 2.0F};
  inputs_.clear();
  labels_.clear();
  EXPECT_EQ(run().output->examples, 0U);
  EXPECT_EQ(gradients_, (std::vector<float>{0, 0}));
}

TEST_F(FakeEngineTest, LabelOutOfRangeIsAnError) {
  open({{2}, 1, 2});
  EXPECT_FALSE(run().output);
}

TEST_F(FakeEngineTest, EvaluationNamesTheClassOfTheFirstParameter) {
  open({{2}});
  parameters_ = {-12.0F, 0.0F};
  const Result<EngineOutput> result = run(Program::kEvaluate).output;
  ASSERT_TRUE(result);
  EXPECT_THAT(result->metrics, testing::ElementsAre(1.0, 2.0));
  EXPECT_EQ(result->examples, 2U);
  EXPECT_DOUBLE_EQ(result->loss_sum, 15.0);
}

}  // namespace
}  // namespace disttrain::workerd
