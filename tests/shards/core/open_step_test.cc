#include "shards/core/open_step.h"

#include <gtest/gtest.h>

namespace disttrain::shards {
namespace {

Staged staged(Step step, std::initializer_list<std::uint32_t> ranks) {
  Staged staged;
  staged.step = step;
  for (const std::uint32_t rank : ranks) staged.members.insert(Rank(rank));
  return staged;
}

Commit commit(Step step, std::initializer_list<std::uint32_t> ranks) {
  return Commit{step, RosterVersion(1), staged(step, ranks).members, 1.0, false};
}

TEST(OpenStep, PlanOfTheReportedSetIsUsedForItsCommit) {
  OpenStep open;
  open.report(staged(Step(5), {0, 2}));
  EXPECT_TRUE(open.is_reported(staged(Step(5), {0, 2})));
  EXPECT_FALSE(open.is_reported(staged(Step(5), {0, 1})));
  const auto plan = open.new_plan();
  open.judge(plan);
  EXPECT_TRUE(open.is_judging());
  open.end_judging(9.0, true);
  EXPECT_FALSE(open.is_judging());
  EXPECT_EQ(open.reported().norm2, 9.0);
  EXPECT_FALSE(open.reported().nonfinite);
  EXPECT_EQ(open.judged_for(commit(Step(5), {0, 2})), plan);
  EXPECT_EQ(open.judged_for(commit(Step(5), {0, 1})), nullptr) << "the pacer chose another set";
  EXPECT_EQ(open.judged_for(commit(Step(6), {0, 2})), nullptr);
  open.close();
  EXPECT_EQ(open.judged_for(commit(Step(5), {0, 2})), nullptr);
  EXPECT_EQ(open.reported().step, Step(5)) << "it may have to be repeated";
}

TEST(OpenStep, AnotherReportForgetsThePlanOfTheOneBefore) {
  OpenStep open;
  open.report(staged(Step(5), {0}));
  open.judge(open.new_plan());
  open.end_judging(1.0, true);
  open.report(staged(Step(5), {0, 1}));
  EXPECT_EQ(open.judged_for(commit(Step(5), {0, 1})), nullptr);
}

TEST(OpenStep, SumThatIsNotFiniteIsReported) {
  OpenStep open;
  open.report(staged(Step(5), {0}));
  open.judge(open.new_plan());
  open.end_judging(1.0, false);
  EXPECT_TRUE(open.reported().nonfinite);
}

TEST(OpenStep, AnotherRosterBeginsItAnew) {
  OpenStep open;
  open.report(staged(Step(5), {0}));
  open.judge(open.new_plan());
  open.begin_anew();
  EXPECT_FALSE(open.is_judging());
  EXPECT_EQ(open.reported().step, Step(0));
}

TEST(OpenStep, PlanIsReusedWhenNobodyRefersToIt) {
  OpenStep open;
  auto first = open.new_plan();
  first->terms.resize(3);
  const SumPlan* const memory = first.get();
  EXPECT_NE(open.new_plan().get(), memory) << "the first is in use";
  first.reset();
  const auto again = open.new_plan();
  EXPECT_EQ(again.get(), memory);
  EXPECT_TRUE(again->terms.empty());
}

}  // namespace
}  // namespace disttrain::shards
