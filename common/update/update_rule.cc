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

double clip_limit(const ClipConfig& clip) {
  return clip.kind == ClipKind::kValue ? clip.value : std::numeric_limits<double>::infinity();
}

double decay_of(const OptimizerConfig& optimizer, const UpdateStep& step) {
  return step.is_decayed ? optimizer.weight_decay : 0.0;
}

template <typename T>
AdamNumbers<T> adam_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  const double keep = optimizer.rule == Rule::kAdamw ? 1.0 - step.learning_rate * decay_of(optimizer, step) : 1.0;
  return AdamNumbers<T>{
      .beta1 = static_cast<T>(optimizer.beta1),
      .one_minus_beta1 = static_cast<T>(1.0 - optimizer.beta1),
      .beta2 = static_cast<T>(optimizer.beta2),
      .one_minus_beta2 = static_cast<T>(1.0 - optimizer.beta2),
      .rate = static_cast<T>(step.learning_rate / (1.0 - integer_power(optimizer.beta1, step.t + 1))),
      .root_scale = static_cast<T>(1.0 / std::sqrt(1.0 - integer_power(optimizer.beta2, step.t + 1))),
      .epsilon = static_cast<T>(optimizer.epsilon),
      .keep = static_cast<T>(keep),
  };
}

template <typename T>
LambNumbers<T> lamb_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  return LambNumbers<T>{
      .beta1 = static_cast<T>(optimizer.beta1),
      .one_minus_beta1 = static_cast<T>(1.0 - optimizer.beta1),
      .beta2 = static_cast<T>(optimizer.beta2),
      .one_minus_beta2 = static_cast<T>(1.0 - optimizer.beta2),
      .first_scale = static_cast<T>(1.0 / (1.0 - integer_power(optimizer.beta1, step.t + 1))),
      .root_scale = static_cast<T>(1.0 / std::sqrt(1.0 - integer_power(optimizer.beta2, step.t + 1))),
      .epsilon = static_cast<T>(optimizer.epsilon),
      .decay = static_cast<T>(decay_of(optimizer, step)),
  };
}

template <typename T>
FtrlNumbers<T> ftrl_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  return FtrlNumbers<T>{
      .one_over_rate = static_cast<T>(1.0 / step.learning_rate),
      .l1 = static_cast<T>(optimizer.l1),
      .twice_l2 = static_cast<T>(2.0 * optimizer.l2),
  };
}

template <typename T>
RmspropNumbers<T> rmsprop_numbers(const OptimizerConfig& optimizer, const UpdateStep& step) {
  return RmspropNumbers<T>{
      .rate = static_cast<T>(step.learning_rate),
      .rho = static_cast<T>(optimizer.rho),
      .one_minus_rho = static_cast<T>(1.0 - optimizer.rho),
      .epsilon = static_cast<T>(optimizer.epsilon),
      .momentum = static_cast<T>(optimizer.momentum),
  };
}

template <typename T>
SlotSpansOf<T> part_of(const SlotSpansOf<T>& slots, std::size_t begin, std::size_t size) {
  SlotSpansOf<T> part;
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (!slots[s].empty()) part[s] = slots[s].subspan(begin, size);
  return part;
}

}  // namespace

const char* name_of(Rule rule) {
  switch (rule) {
    case Rule::kSgd:
      return "sgd";
    case Rule::kMomentum:
      return "momentum";
    case Rule::kNesterov:
      return "nesterov";
    case Rule::kAdagrad:
      return "adagrad";
    case Rule::kRmsprop:
      return "rmsprop";
    case Rule::kAdam:
      return "adam";
    case Rule::kAdamw:
      return "adamw";
    case Rule::kLamb:
      return "lamb";
    case Rule::kFtrl:
      return "ftrl";
  }
  return "unknown";
}

bool has_slots_of(Rule rule, std::string_view before) {
  constexpr Rule kFamilies[][3] = {{Rule::kMomentum, Rule::kNesterov, Rule::kNesterov},
                                   {Rule::kAdam, Rule::kAdamw, Rule::kLamb}};
  if (before == name_of(rule)) return true;
  return std::ranges::any_of(kFamilies, [&](const auto& family) {
    return std::ranges::count(family, rule) > 0 &&
           std::ranges::any_of(family, [&](Rule other) { return before == name_of(other); });
  });
}

std::size_t slots_of(const JobConfig& job) {
  return UpdateRule(job.train).slots() + (job.evaluate.average > 0.0 ? 1 : 0);
}

UpdateRule::UpdateRule(const OptimizerConfig& optimizer, const ClipConfig& clip, VectorWidth width)
    : optimizer_(optimizer), limit_(clip_limit(clip)), width_(width) {}

bool UpdateRule::decays(const VariableSpec& variable) const {
  return optimizer_.weight_decay_of == DecayOf::kAll || variable.shape.size() >= 2;
}

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
    case Rule::kLamb:
    case Rule::kFtrl:
      return 2;
  }
  return 0;
}

template <typename T>
bool UpdateRule::apply(const UpdateStep& step, Values<T> parameters, ConstValues<T> gradient,
                       const std::type_identity_t<SlotSpansOf<T>>& slots) const {
  const bool decoupled = optimizer_.rule == Rule::kAdamw || optimizer_.rule == Rule::kLamb;
  const GradientTerms<T> terms{.scale = static_cast<T>(step.gradient_scale),
                               .limit = static_cast<T>(limit_),
                               .decay = decoupled ? T{0} : static_cast<T>(decay_of(optimizer_, step))};
  const auto rate = static_cast<T>(step.learning_rate);
  const auto mu = static_cast<T>(optimizer_.momentum);
  const auto epsilon = static_cast<T>(optimizer_.epsilon);
  switch (optimizer_.rule) {
    case Rule::kSgd:
      return sgd<T>(terms, rate, parameters, gradient, width_);
    case Rule::kMomentum:
      return momentum<T>(terms, rate, mu, parameters, gradient, slots[0], width_);
    case Rule::kNesterov:
      return nesterov<T>(terms, rate, mu, parameters, gradient, slots[0], width_);
    case Rule::kAdagrad:
      return adagrad<T>(terms, rate, epsilon, parameters, gradient, slots[0], width_);
    case Rule::kRmsprop: {
      const RmspropNumbers<T> numbers = rmsprop_numbers<T>(optimizer_, step);
      if (this->slots() == 1) return rmsprop<T>(terms, numbers, parameters, gradient, slots[0], width_);
      return rmsprop_with_momentum<T>(terms, numbers, parameters, gradient, slots[0], slots[1], width_);
    }
    case Rule::kAdam:
    case Rule::kAdamw:
      return adam<T>(terms, adam_numbers<T>(optimizer_, step), parameters, gradient, slots[0], slots[1], width_);
    case Rule::kLamb: {
      LayerNorms norms(width_);
      const bool is_small = prepare<T>(step, parameters, gradient, slots, norms);
      return finish<T>(step, norms.trust(), parameters, slots) && is_small;
    }
    case Rule::kFtrl:
      if (!std::isfinite(ftrl_numbers<T>(optimizer_, step).one_over_rate)) return true;  // a rate of 0 changes nothing
      return ftrl<T>(terms, ftrl_numbers<T>(optimizer_, step), parameters, gradient, slots[0], slots[1], width_);
  }
  return true;
}

template <typename T>
bool UpdateRule::apply_sum(const UpdateStep& step, Values<T> parameters, WeightedGradients<T> gradients,
                           const std::type_identity_t<SlotSpansOf<T>>& slots) const {
  for (const auto& gradient : gradients) DISTTRAIN_CHECK_EQ(gradient.values.size(), parameters.size());
  if (gradients.size() == 1 && gradients[0].weight == T{1})
    return apply<T>(step, parameters, gradients[0].values, slots);
  if (is_by_variable()) {
    LayerNorms norms(width_);
    const bool is_small = prepare_sum<T>(step, parameters, gradients, slots, norms);
    return finish<T>(step, norms.trust(), parameters, slots) && is_small;
  }
  std::array<T, kBlock> sum;
  bool is_small = true;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    const std::span<T> block = std::span(sum).first(size);
    weighted_sum<T>(block, gradients, begin, width_);
    is_small = apply<T>(step, parameters.subspan(begin, size), block, part_of<T>(slots, begin, size)) && is_small;
  }
  return is_small;
}

template <typename T>
bool UpdateRule::prepare_sum(const UpdateStep& step, ConstValues<T> parameters, WeightedGradients<T> gradients,
                             const std::type_identity_t<SlotSpansOf<T>>& slots, LayerNorms& norms) const {
  for (const auto& gradient : gradients) DISTTRAIN_CHECK_EQ(gradient.values.size(), parameters.size());
  if (gradients.size() == 1 && gradients[0].weight == T{1})
    return prepare<T>(step, parameters, gradients[0].values, slots, norms);
  std::array<T, kBlock> sum;
  bool is_small = true;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    const std::span<T> block = std::span(sum).first(size);
    weighted_sum<T>(block, gradients, begin, width_);
    is_small =
        prepare<T>(step, parameters.subspan(begin, size), block, part_of<T>(slots, begin, size), norms) && is_small;
  }
  return is_small;
}

template <typename T>
bool UpdateRule::prepare(const UpdateStep& step, std::span<const T> parameters, std::span<const T> gradient,
                         const SlotSpansOf<T>& slots, LayerNorms& norms) const {
  DISTTRAIN_CHECK(is_by_variable());
  const GradientTerms<T> terms{
      .scale = static_cast<T>(step.gradient_scale), .limit = static_cast<T>(limit_), .decay = T{0}};
  const LambNumbers<T> numbers = lamb_numbers<T>(optimizer_, step);
  std::array<T, kBlock> direction;
  bool is_small = true;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    const SlotSpansOf<T> moments = part_of<T>(slots, begin, size);
    const std::span<T> block = std::span(direction).first(size);
    is_small =
        lamb_moments<T>(terms, numbers, gradient.subspan(begin, size), moments[0], moments[1], width_) && is_small;
    lamb_direction<T>(numbers, block, parameters.subspan(begin, size), moments[0], moments[1], width_);
    norms.add<T>(parameters.subspan(begin, size), block);
  }
  return is_small;
}

// Computes the direction a second time, because there is no memory to keep it.
template <typename T>
bool UpdateRule::finish(const UpdateStep& step, double trust, Values<T> parameters,
                        const std::type_identity_t<SlotSpansOf<T>>& slots) const {
  DISTTRAIN_CHECK(is_by_variable());
  const LambNumbers<T> numbers = lamb_numbers<T>(optimizer_, step);
  const auto rate = static_cast<T>(step.learning_rate * trust);
  std::array<T, kBlock> direction;
  bool is_small = true;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, parameters.size() - begin);
    const SlotSpansOf<T> moments = part_of<T>(slots, begin, size);
    const std::span<T> block = std::span(direction).first(size);
    lamb_direction<T>(numbers, block, parameters.subspan(begin, size), moments[0], moments[1], width_);
    is_small = sgd<T>({}, rate, parameters.subspan(begin, size), block, width_) && is_small;
  }
  return is_small;
}

template <typename T>
void LayerNorms::add(std::span<const T> parameters, std::span<const T> direction) {
  parameters_.add<T>(parameters);
  direction_.add<T>(direction);
}

double LayerNorms::trust() const {
  const double parameters = std::sqrt(parameters_.value());
  const double direction = std::sqrt(direction_.value());
  return parameters == 0.0 || direction == 0.0 ? 1.0 : parameters / direction;
}

// The two types that parameters may have.
#define DISTTRAIN_INSTANTIATE(T)                                                                                       \
  template bool UpdateRule::apply<T>(const UpdateStep&, std::span<T>, std::span<const T>, const SlotSpansOf<T>&)       \
      const;                                                                                                           \
  template bool UpdateRule::apply_sum<T>(const UpdateStep&, std::span<T>, std::span<const WeightedGradientOf<T>>,      \
                                         const SlotSpansOf<T>&) const;                                                 \
  template bool UpdateRule::prepare_sum<T>(const UpdateStep&, std::span<const T>,                                      \
                                           std::span<const WeightedGradientOf<T>>, const SlotSpansOf<T>&, LayerNorms&) \
      const;                                                                                                           \
  template bool UpdateRule::finish<T>(const UpdateStep&, double, std::span<T>, const SlotSpansOf<T>&) const;
DISTTRAIN_INSTANTIATE(float)
DISTTRAIN_INSTANTIATE(double)
#undef DISTTRAIN_INSTANTIATE

}  // namespace disttrain::update
