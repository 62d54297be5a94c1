#include "common/update/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/check.h"

namespace disttrain::update {
namespace {

// Returns which share of the decay is over, from 0 to 1.
double decayed(std::uint64_t steps, std::uint64_t decay_steps) {
  DISTTRAIN_CHECK_GE(decay_steps, 1u);
  return static_cast<double>(std::min(steps, decay_steps)) / static_cast<double>(decay_steps);
}

}  // namespace

double integer_power(double base, std::uint64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

double schedule_factor(const ScheduleConfig& schedule, std::uint64_t t) {
  if (t < schedule.warmup_steps) return static_cast<double>(t + 1) / static_cast<double>(schedule.warmup_steps);
  const std::uint64_t steps = t - schedule.warmup_steps;
  const auto down_to_end = [&schedule](double left) {
    return schedule.end_factor + (1.0 - schedule.end_factor) * left;
  };
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return 1.0;
    case ScheduleKind::kStep:
      DISTTRAIN_CHECK_GE(schedule.every_steps, 1u);
      return integer_power(schedule.factor, steps / schedule.every_steps);
    case ScheduleKind::kExponential:
      DISTTRAIN_CHECK_GE(schedule.every_steps, 1u);
      return std::pow(schedule.factor, static_cast<double>(steps) / static_cast<double>(schedule.every_steps));
    case ScheduleKind::kPolynomial:
      return down_to_end(std::pow(1.0 - decayed(steps, schedule.decay_steps), schedule.power));
    case ScheduleKind::kCosine:
      return down_to_end(0.5 * (1.0 + std::cos(std::numbers::pi * decayed(steps, schedule.decay_steps))));
  }
  return 1.0;
}

double learning_rate(const TrainSection& train, std::uint64_t t, std::uint64_t workers) {
  const double scale = train.scale_learning_rate_linear ? static_cast<double>(workers) : 1.0;
  return train.optimizer.learning_rate * scale * schedule_factor(train.schedule, t);
}

}  // namespace disttrain::update
