// Evaluations: which parameters a worker pulls for them, and when.
#include "tests/workerd/core/worker_core_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerCoreTest, FinalEvaluationPullsFirstAndReportsThePacersVersion) {
  begin_and_pull();
  give(StopRequested{});
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  EXPECT_EQ(take<ReportFinished>().size(), 1U);
  give(EvaluateRequested{});
  EXPECT_TRUE(take<RunEvaluation>().empty());
  for (const SendPull& pull : take<SendPull>()) answer_pull(pull, Step(9));
  ASSERT_EQ(take<RunEvaluation>().size(), 1U);
  give(EvaluationDone{20.0, 40, {{"accuracy", 0.75}}, 1, "some words are unknown"});
  const auto report = take<ReportEvaluated>();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].evaluated.notice, "some words are unknown");
  EXPECT_EQ(report[0].evaluated.step, Step(9));
  EXPECT_TRUE(report[0].evaluated.final);
  EXPECT_DOUBLE_EQ(report[0].evaluated.loss, 0.5);
  EXPECT_EQ(report[0].evaluated.metrics, (std::vector<MetricValue>{{"accuracy", 0.75}}));
}

TEST_F(WorkerCoreTest, SynchronousEvaluationUsesTheParametersOfExactlyThatStep) {
  facts_.config.train.mode = Mode::kSync;
  facts_.config.evaluate.every_steps = 2;
  facts_.evaluates = true;
  begin_and_pull(Step(1));
  give(Computed{0.5F});
  take<SendPull>();
  take<Compute>();
  answer_push(ShardId(0), Sequence(2), Step(2));
  answer_push(ShardId(1), Sequence(1), Step(2));
  EXPECT_EQ(take<RunEvaluation>().size(), 1U);
  EXPECT_TRUE(take<SendPull>().empty());
  EXPECT_TRUE(take<Compute>().empty());
  give(EvaluationDone{1.0, 2, {{"accuracy", 0.5}}});
  const auto report = take<ReportEvaluated>();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_TRUE(report[0].evaluated.stalled_training);
  EXPECT_EQ(report[0].evaluated.step, Step(2));
  EXPECT_EQ(take<Compute>().size(), 1U);
}

// With evaluate.average a worker pulls the averages for an evaluation. It must not compute a step from them.
TEST_F(WorkerCoreTest, EvaluationOfAveragesPullsThemAndAfterwardsTheParameters) {
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    facts_.config.train.mode = mode;
    facts_.config.evaluate.every_steps = 2;
    facts_.config.evaluate.average = 0.9;
    facts_.evaluates = true;
    actions_.clear();
    begin_and_pull(Step(1));
    give(Computed{0.5F});
    take<SendPush>();
    take<Compute>();
    answer_push(ShardId(0), Sequence(2), Step(2));
    answer_push(ShardId(1), Sequence(1), Step(2));
    const auto pulls = take<SendPull>();
    ASSERT_EQ(pulls.size(), 2U);
    EXPECT_TRUE(take<RunEvaluation>().empty());
    for (const SendPull& pull : pulls) {
      EXPECT_TRUE(pull.pull.averages);
      answer_pull(pull, Step(2));
    }
    EXPECT_EQ(take<RunEvaluation>().size(), 1U);
    give(EvaluationDone{1.0, 2, {{"accuracy", 0.5}}});
    EXPECT_EQ(take<ReportEvaluated>().at(0).evaluated.step, Step(2));
    EXPECT_TRUE(take<Compute>().empty());
    const auto again = take<SendPull>();
    ASSERT_EQ(again.size(), 2U);
    for (const SendPull& pull : again) {
      EXPECT_FALSE(pull.pull.averages);
      answer_pull(pull, Step(2));
    }
    EXPECT_TRUE(take<RunEvaluation>().empty());
    EXPECT_EQ(take<Compute>().size(), 1U);
  }
}

TEST_F(WorkerCoreTest, FinalEvaluationOfAveragesPullsNoParametersAfterwards) {
  facts_.config.evaluate.average = 0.9;
  begin_and_pull();
  give(StopRequested{});
  give(Computed{0.5F});
  answer_push(ShardId(0), Sequence(2), Step(1));
  answer_push(ShardId(1), Sequence(1), Step(1));
  give(EvaluateRequested{});
  for (const SendPull& pull : take<SendPull>()) {
    EXPECT_TRUE(pull.pull.averages);
    answer_pull(pull, Step(9));
  }
  ASSERT_EQ(take<RunEvaluation>().size(), 1U);
  give(EvaluationDone{20.0, 40, {{"accuracy", 0.75}}});
  EXPECT_EQ(take<ReportEvaluated>().size(), 1U);
  EXPECT_TRUE(take<SendPull>().empty());
}

TEST_F(WorkerCoreTest, AsynchronousEvaluationOfMidRunPullsFirst) {
  facts_.config.evaluate.every_steps = 100;
  facts_.evaluates = true;
  begin_and_pull(Step(150));
  EXPECT_TRUE(take<SendPull>().empty()) << "the multiple 100 was passed before it came";
  take<Compute>();
  give(Computed{0.5F});
  take<SendPush>();
  answer_push(ShardId(0), Sequence(2), Step(200));
  answer_push(ShardId(1), Sequence(1), Step(200));
  const auto pulls = take<SendPull>();
  ASSERT_EQ(pulls.size(), 2U);
  for (const SendPull& pull : pulls) answer_pull(pull, Step(201));
  EXPECT_EQ(take<RunEvaluation>().size(), 1U);
  give(EvaluationDone{1.0, 2, {{"accuracy", 0.5}}});
  EXPECT_EQ(take<ReportEvaluated>().at(0).evaluated.step, Step(201));
  EXPECT_EQ(take<Compute>().size(), 1U);
}

}  // namespace
}  // namespace disttrain::workerd
