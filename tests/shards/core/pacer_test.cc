#include <gtest/gtest.h>

#include <chrono>

#include "shards/core/pacer.h"

namespace disttrain::shards::test {
namespace {

TEST(Pacer, MeasuresFromTheLastStepOfWarmUp) {
  Pacer pacer(NonfiniteConfig{}, 3, 0, PacerReport{});
  Instant now{};
  for (int step = 1; step <= 10; ++step) {
    now += std::chrono::seconds(step <= 3 ? 100 : 1);
    pacer.step_done(now, StepDone{10, 2.0, 0.0, false});
  }
  const PacerReport report = pacer.report(false);
  EXPECT_EQ(report.measured_steps, 7U);
  EXPECT_EQ(report.measured_examples, 70U);
  EXPECT_EQ(report.training, std::chrono::seconds(7));
  EXPECT_DOUBLE_EQ(report.loss, 2.0);
}

TEST(Pacer, FailsAtTheFirstWhereAsked) {
  Pacer pacer(NonfiniteConfig{NonfiniteAction::kFail, 10}, 0, 0, PacerReport{});
  EXPECT_FALSE(pacer.verdict());
  pacer.step_done(Instant{}, StepDone{10, 2.0, 0.0, true});
  EXPECT_TRUE(pacer.verdict());
}

}  // namespace
}  // namespace disttrain::shards::test
