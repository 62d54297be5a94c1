// An update rule as a job configures it: picks the function of rules.h and computes its numbers. A value without state;
// the caller owns parameters and slots.
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

// The inputs that differ for each update.
struct UpdateStep {
  double learning_rate = 0.0;   // of this update: learning_rate() in schedule.h
  std::uint64_t t = 0;          // updates before this one; Adam's t is one more
  double gradient_scale = 1.0;  // factor on the gradient: 1 / total weight, times the clip factor of the global norm
};

// The slots of the elements to update, each as long as the parameters; those beyond UpdateRule::slots() are empty.
using SlotSpans = std::array<std::span<float>, kMaxSlots>;

class UpdateRule {
 public:
  // clip = "value" is applied here, to the scaled gradient, before L2 decay; "global_norm" comes as gradient_scale.
  UpdateRule(const OptimizerConfig& optimizer, const ClipConfig& clip, VectorWidth width = best_vector_width());
  explicit UpdateRule(const TrainSection& train) : UpdateRule(train.optimizer, train.clip) {}

  // Slots per parameter: 0 sgd; 1 momentum, nesterov, adagrad, rmsprop; 2 adam, adamw, rmsprop with momentum > 0.
  // They begin at 0.
  std::size_t slots() const;

  // One pass. Elementwise: a span may be updated in pieces, in any order.
  void apply(const UpdateStep& step, std::span<float> parameters, std::span<const float> gradient,
             const SlotSpans& slots) const;

  // The same with the weighted sum of several gradients, each as long as the parameters, added in their order; still
  // one pass over memory. With one gradient of weight 1 it equals apply().
  void apply_sum(const UpdateStep& step, std::span<float> parameters, std::span<const WeightedGradient> gradients,
                 const SlotSpans& slots) const;

 private:
  OptimizerConfig optimizer_;
  float limit_;
  VectorWidth width_;
};

}  // namespace disttrain::update
