#include "common/update/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace disttrain::update {
namespace {

ScheduleConfig schedule(ScheduleKind kind, std::uint64_t warmup_steps = 0) {
  return ScheduleConfig{.kind = kind,
                        .warmup_steps = warmup_steps,
                        .every_steps = 10,
                        .factor = 0.5,
                        .decay_steps = 100,
                        .power = 2.0,
                        .end_factor = 0.1};
}

TEST(Schedule, ConstantStaysAtOne) {
  for (std::uint64_t t : {0u, 1u, 1000000u}) EXPECT_EQ(schedule_factor(schedule(ScheduleKind::kConstant), t), 1.0);
}

TEST(Schedule, WarmUpRisesToOneAtItsLastStep) {
  for (ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kExponential,
                            ScheduleKind::kPolynomial, ScheduleKind::kCosine}) {
    const ScheduleConfig config = schedule(kind, 4);
    EXPECT_EQ(schedule_factor(config, 0), 0.25);
    EXPECT_EQ(schedule_factor(config, 1), 0.5);
    EXPECT_EQ(schedule_factor(config, 3), 1.0);
    EXPECT_EQ(schedule_factor(config, 4), 1.0);  // the decay begins here
    EXPECT_EQ(schedule_factor(config, 4 + 30), schedule_factor(schedule(kind), 30));
  }
}

TEST(Schedule, StepFallsOncePerPeriod) {
  const ScheduleConfig config = schedule(ScheduleKind::kStep);
  EXPECT_EQ(schedule_factor(config, 9), 1.0);
  EXPECT_EQ(schedule_factor(config, 10), 0.5);
  EXPECT_EQ(schedule_factor(config, 19), 0.5);
  EXPECT_EQ(schedule_factor(config, 35), 0.125);
}

TEST(Schedule, ExponentialFallsSmoothly) {
  const ScheduleConfig config = schedule(ScheduleKind::kExponential);
  EXPECT_EQ(schedule_factor(config, 0), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 5), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(schedule_factor(config, 20), 0.25);
}

TEST(Schedule, PolynomialEndsAtItsEndFactor) {
  const ScheduleConfig config = schedule(ScheduleKind::kPolynomial);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 0), 1.0);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 50), 0.1 + 0.9 * 0.25);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 1000), 0.1);
}

TEST(Schedule, CosineEndsAtItsEndFactor) {
  const ScheduleConfig config = schedule(ScheduleKind::kCosine);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 0), 1.0);
  EXPECT_NEAR(schedule_factor(config, 25), 0.1 + 0.9 * (0.5 + std::sqrt(0.125)), 1e-15);
  EXPECT_NEAR(schedule_factor(config, 50), 0.55, 1e-15);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(config, 5000), 0.1);
}

TEST(LearningRate, IsTheOptimizersTimesTheFactor) {
  TrainSection train;
  train.optimizer.learning_rate = 0.2;
  train.schedule = schedule(ScheduleKind::kStep);
  EXPECT_DOUBLE_EQ(learning_rate(train, 0, 4), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(train, 12, 4), 0.1);
}

TEST(LearningRate, LinearScaleMultipliesByTheWorkers) {
  TrainSection train;
  train.optimizer.learning_rate = 0.2;
  train.scale_learning_rate_linear = true;
  EXPECT_DOUBLE_EQ(learning_rate(train, 0, 1), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(train, 0, 4), 0.8);
}

TEST(IntegerPower, AgreesWithPow) {
  EXPECT_EQ(integer_power(0.9, 0), 1.0);
  EXPECT_EQ(integer_power(3.0, 5), 243.0);
  for (std::uint64_t n : {1u, 2u, 7u, 100u, 12345u})
    EXPECT_NEAR(integer_power(0.999, n), std::pow(0.999, static_cast<double>(n)), 1e-12);
  EXPECT_EQ(integer_power(0.9, 1'000'000'000'000u), 0.0);
}

TEST(ScheduleDeathTest, AnEmptyPeriodIsABug) {
  ScheduleConfig config = schedule(ScheduleKind::kStep);
  config.every_steps = 0;
  EXPECT_DEATH(schedule_factor(config, 3), "check failed");
}

}  // namespace
}  // namespace disttrain::update
