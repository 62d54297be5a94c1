// The update rule of a job: chooses a function of rules.h and computes the numbers that the function needs. The class
// has no state; the caller keeps the parameters and the slots.
//
//   UpdateRule rule(job.train);
//   std::vector<std::vector<float>> slots(rule.slots(), std::vector<float>(elements, 0.0F));
//   rule.apply({.learning_rate = learning_rate(job.train, t, workers), .t = t}, parameters, gradient, slots_of_bucket);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/config/job_config.h"
#include "common/update/rules.h"
#include "common/update/vector.h"

namespace disttrain::update {

inline constexpr std::size_t kMaxSlots = 2;

// The inputs that are different for each update.
struct UpdateStep {
  double learning_rate = 0.0;   // learning rate of this update; see learning_rate() in schedule.h
  std::uint64_t t = 0;          // number of updates before this one; the t in Adam's formula is one more
  double gradient_scale = 1.0;  // factor on the gradient: 1 / total weight, times the factor that clips the global norm
};

// The slots of the elements to update. Each slot is as long as the parameters. Entries from UpdateRule::slots() on are
// empty.
using SlotSpans = std::array<std::span<float>, kMaxSlots>;

class UpdateRule {
 public:
  // With clip = "value" this class clips the gradient, after the scaling and before the L2 decay. With
  // clip = "global_norm" the caller has to pass a gradient_scale that clips.
  UpdateRule(const OptimizerConfig& optimizer, const ClipConfig& clip, VectorWidth width = best_vector_width());
  explicit UpdateRule(const TrainSection& train) : UpdateRule(train.optimizer, train.clip) {}

  // The number of slots per parameter: 0 for sgd; 1 for momentum, nesterov, adagrad and rmsprop; 2 for adam, adamw and
  // rmsprop with momentum > 0. Slots begin at 0.
  std::size_t slots() const;

  // Updates the parameters in one pass over memory. It works element by element, so a span may be updated in pieces, in
  // any order.
  void apply(const UpdateStep& step, std::span<float> parameters, std::span<const float> gradient,
             const SlotSpans& slots) const;

  // Does the same with the weighted sum of several gradients, also in one pass over memory. Each gradient is as long as
  // the parameters. The gradients are added in the order of the span. A single gradient of weight 1 gives the same
  // result as apply().
  void apply_sum(const UpdateStep& step, std::span<float> parameters, std::span<const WeightedGradient> gradients,
                 const SlotSpans& slots) const;

 private:
  OptimizerConfig optimizer_;
  float limit_;
  VectorWidth width_;
};

}  // namespace disttrain::update
