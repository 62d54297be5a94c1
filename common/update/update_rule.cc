#include "common/update/update_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check.h"
#include "common/update/schedule.h"

namespace disttrain::update {
namespace {

// apply_sum works in blocks of this many elements, so that the sum and the parameters of a block stay in the L1 cache.
constexpr std::size_t kBlock = 2048;

float clip_limit(const ClipConfig& clip) {
  return clip.kind == ClipKind::kValue ? static_cast<float>(clip.value) : std::numeric_limits<float>::infinity();
}

AdamNumbers adam_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  const double keep = optimizer.rule == Rule::kAdamw ? 1.0 - step.learning_rate * optimizer.weight_decay : 1.0;
  return AdamNumbers{
      .beta1 = static_cast<float>(optimizer.beta1),
      .one_minus_beta1 = static_cast<float>(1.0 - optimizer.beta1),
      .beta2 = static_cast<float>(optimizer.beta2),
      .one_minus_beta2 = static_cast<float>(1.0 - optimizer.beta2),
      .rate = static_cast<float>(step.learning_rate / (1.0 - integer_power(optimizer.beta1, step.t + 1))),
      .root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - integer_power(optimizer.beta2, step.t + 1))),
      .epsilon = static_cast<float>(optimizer.epsilon),
      .keep = static_cast<float>(keep),
  };
}

RmspropNumbers rmsprop_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  return RmspropNumbers{
      .rate = static_cast<float>(step.learning_rate),
      .rho = static_cast<float>(optimizer.rho),
      .one_minus_rho = static_cast<float>(1.0 - optimizer.rho),
      .epsilon = static_cast<float>(optimizer.epsilon),
      .momentum = static_cast<float>(optimizer.momentum),
  };
}

}  // namespace

UpdateRule::UpdateRule(const OptimizerConfig& optimizer, const ClipConfig& clip, VectorWidth width)
    : optimizer_(optimizer), limit_(clip_limit(clip)), width_(width) {}

std::size_t UpdateRule::slots() const {
  switch (optimizer_.rule) {
    case Rule::kSgd:
      return 0;
    case Rule::kMomentum:
    case Rule::kNesterov:
    case Rule::kAdagrad:
      return 1;
    case Rule::kRmsprop:
      return optimizer_.momentum > 0.0 ? 2 : 1;
    case Rule::kAdam:
    case Rule::kAdamw:
      return 2;
  }
  return 0;
}

void UpdateRule::apply(const UpdateStep& step, std::span<float> parameters, std::span<const float> gradient,
                       const SlotSpans& slots) const {
  const bool decoupled = optimizer_.rule == Rule::kAdamw;
  const GradientTerms terms{.scale = static_cast<float>(step.gradient_scale),
                            .limit = limit_,
                            .decay = decoupled ? 0.0F : static_cast<float>(optimizer_.weight_decay)};
  const auto rate = static_cast<float>(step.learning_rate);
  const auto mu = static_cast<float>(optimizer_.momentum);
  const auto epsilon = static_cast<float>(optimizer_.epsilon);
  switch (optimizer_.rule) {
    case Rule::kSgd:
      return sgd(terms, rate, parameters, gradient, width_);
    case Rule::kMomentum:
      return momentum(terms, rate, mu, parameters, gradient, slots[0], width_);
    case Rule::kNesterov:
      return nesterov(terms, rate, mu, parameters, gradient, slots[0], width_);
    case Rule::kAdagrad:
      return adagrad(terms, rate, epsilon, parameters, gradient, slots[0], width_);
    case Rule::kRmsprop: {
      const RmspropNumbers numbers = rmsprop_numbers(optimizer_, step);
      if (this->slots() == 1) return rmsprop(terms, numbers, parameters, gradient, slots[0], width_);
      return rmsprop_with_momentum(terms, numbers, parameters, gradient, slots[0], slots[1], width_);
    }
    case Rule::kAdam:
    case Rule::kAdamw:
      return adam(terms, adam_numbers(optimizer_, step), parameters, gradient, slots[0], slots[1], width_);
  }
}

void UpdateRule::apply_sum(const UpdateStep& step, std::span<float> parameters,
                           std::span<const WeightedGradient> gradients, const SlotSpans& slots) const {
  for (const WeightedGradient& gradient : gradients) DISTTRAIN_CHECK_EQ(gradient.values.size(), parameters.size());
  if (gradients.size() == 1 && gradients[0].weight == 1.0F) return apply(step, parameters, gradients[0].values, slots);
  std::array<float, kBlock> sum;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    const std::span<float> block = std::span(sum).first(size);
    weighted_sum(block, gradients, begin, width_);
    SlotSpans block_slots;
    for (std::size_t s = 0; s < this->slots(); ++s) block_slots[s] = slots[s].subspan(begin, size);
    apply(step, parameters.subspan(begin, size), block, block_slots);
  }
}

}  // namespace disttrain::update
