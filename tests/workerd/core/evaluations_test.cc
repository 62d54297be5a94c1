#include "workerd/core/evaluations.h"

#include <gtest/gtest.h>

namespace disttrain::workerd {
namespace {

constexpr Instant kBegin{std::chrono::seconds(1)};
constexpr Instant kEnd{std::chrono::seconds(4)};

TEST(Evaluations, AreDueEveryStepsOfTheEvaluator) {
  Evaluations other(false, 10);
  EXPECT_FALSE(other.is_due(Step(10)));
  Evaluations none(true, 0);
  EXPECT_FALSE(none.is_due(Step(10)));
  Evaluations evaluations(true, 10);
  EXPECT_FALSE(evaluations.is_due(Step(25))) << "that of step 20 was due before it began";
  EXPECT_FALSE(evaluations.is_due(Step(29)));
  EXPECT_TRUE(evaluations.is_due(Step(30)));
  evaluations.run(false, Step(34), kBegin);
  evaluations.finish({}, Step(34), false, kEnd);
  EXPECT_FALSE(evaluations.is_due(Step(39)));
  EXPECT_TRUE(evaluations.is_due(Step(40)));
}

TEST(Evaluations, NewEvaluatorRunsNoneThatWereDueBefore) {
  Evaluations evaluations(false, 10);
  evaluations.become_evaluator(Step(29));
  EXPECT_TRUE(evaluations.is_due(Step(30)));
  evaluations.become_evaluator(Step(30));
  EXPECT_TRUE(evaluations.is_due(Step(30))) << "the chief has repeated its order";
  Evaluations late(false, 10);
  late.become_evaluator(std::nullopt);
  EXPECT_FALSE(late.is_due(Step(30)));
  EXPECT_TRUE(late.is_due(Step(40)));
}

TEST(Evaluations, ResultTellsWhetherTheOthersWaited) {
  Evaluations evaluations(true, 10);
  evaluations.run(false, Step(10), kBegin);
  EXPECT_TRUE(evaluations.runs());
  EvaluationDone done;
  done.loss_sum = 12;
  done.examples = 4;
  const Evaluated result = evaluations.finish(done, Step(10), true, kEnd);
  EXPECT_FALSE(evaluations.runs());
  EXPECT_EQ(result.loss, 3.0);
  EXPECT_EQ(result.took, std::chrono::seconds(3));
  EXPECT_TRUE(result.stalled_training);
  EXPECT_FALSE(result.final);
  EXPECT_FALSE(evaluations.final_result());
}

TEST(Evaluations, FinalResultIsKept) {
  Evaluations evaluations(false, 10);
  evaluations.want_final();
  EXPECT_TRUE(evaluations.is_final_wanted());
  evaluations.pull();
  EXPECT_TRUE(evaluations.pulls());
  evaluations.run(true, Step(17), kBegin);
  EXPECT_FALSE(evaluations.pulls());
  evaluations.want_final();
  EXPECT_FALSE(evaluations.is_final_wanted()) << "it is under way";
  const Evaluated result = evaluations.finish({}, Step(17), true, kEnd);
  EXPECT_TRUE(result.final);
  EXPECT_FALSE(result.stalled_training) << "nobody trains any more";
  ASSERT_TRUE(evaluations.final_result());
  EXPECT_EQ(evaluations.final_result()->step, Step(17));
}

}  // namespace
}  // namespace disttrain::workerd
