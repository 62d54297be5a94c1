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
#include <string_view>

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/update/rules.h"
#include "common/update/vector.h"

namespace disttrain::update {

inline constexpr std::size_t kMaxSlots = 2;

// The inputs that are different for each update.
struct UpdateStep {
  double learning_rate = 0.0;   // learning rate of this update; see learning_rate() in schedule.h
  std::uint64_t t = 0;          // number of updates before this one; the t in Adam's formula is one more
  double gradient_scale = 1.0;  // factor on the gradient: 1 / total weight, times the factor that clips the global norm
  bool is_decayed = true;       // false: without weight decay; see UpdateRule::decays()
};

// The slots of the elements to update. Each slot is as long as the parameters. Entries from UpdateRule::slots() on are
// empty.
template <typename T>
using SlotSpansOf = std::array<std::span<T>, kMaxSlots>;
using SlotSpans = SlotSpansOf<float>;

// The norms of one variable and of its update's direction, which lamb needs. prepare() adds to them. The bits of the
// result don't depend on the pieces in which the variable is added.
class LayerNorms {
 public:
  explicit LayerNorms(VectorWidth width = best_vector_width()) : parameters_(width), direction_(width) {}
  template <typename T>
  void add(std::span<const T> parameters, std::span<const T> direction);
  // |p| / |u|, or 1 if one of the two norms is 0.
  double trust() const;

 private:
  SquaredNorm parameters_;
  SquaredNorm direction_;
};

// The rule's name in job.toml and in a checkpoint's manifest: "sgd", "momentum", ...
const char* name_of(Rule rule);
// True if the slots of the rule named `before` have the meaning that those of `rule` have: both velocities, or both
// moving averages of the gradient and of its square. Rules that keep as many slots may mean others by them.
bool has_slots_of(Rule rule, std::string_view before);

// The number of arrays that a shard keeps besides the parameters, with one number for each parameter: the slots of the
// update rule and, with evaluate.average, the moving average of the parameters, which is the last one.
std::size_t slots_of(const JobConfig& job);

// The functions below compute in T, the type of the parameters: float, unless the caller says double, as in
// rule.apply<double>(step, parameters, gradient, slots).
class UpdateRule {
 public:
  // With clip = "value" this class clips the gradient, after the scaling and before the L2 decay. With
  // clip = "global_norm" the caller has to pass a gradient_scale that clips.
  UpdateRule(const OptimizerConfig& optimizer, const ClipConfig& clip, VectorWidth width = best_vector_width());
  explicit UpdateRule(const TrainSection& train) : UpdateRule(train.optimizer, train.clip) {}

  // Whether weight decay is for this variable; see weight_decay_of.
  bool decays(const VariableSpec& variable) const;

  // The number of slots per parameter: 0 for sgd; 1 for momentum, nesterov, adagrad and rmsprop; 2 for adam, adamw,
  // lamb, ftrl and rmsprop with momentum > 0. Slots begin at 0.
  std::size_t slots() const;

  // The four functions below return whether all that they have written is small (magnitude.h), and so is finite. This
  // check costs no pass of its own.

  // Updates the parameters in one pass over memory. It works element by element, so a span may be updated in pieces, in
  // any order. Only lamb doesn't: it takes the span for a whole variable. See is_by_variable().
  template <typename T = float>
  bool apply(const UpdateStep& step, Values<T> parameters, ConstValues<T> gradient,
             const std::type_identity_t<SlotSpansOf<T>>& slots) const;

  // Does the same with the weighted sum of several gradients, also in one pass over memory. Each gradient is as long as
  // the parameters. The gradients are added in the order of the span. A single gradient of weight 1 gives the same
  // result as apply().
  template <typename T = float>
  bool apply_sum(const UpdateStep& step, Values<T> parameters, WeightedGradients<T> gradients,
                 const std::type_identity_t<SlotSpansOf<T>>& slots) const;

  // True for lamb: an update needs norms over the whole variable. If a variable is updated in pieces, call
  // prepare_sum() for each of its pieces, in the order of its elements, and then finish() for each piece, in any order.
  // This gives the same bits as apply_sum() on the whole variable.
  bool is_by_variable() const { return optimizer_.rule == Rule::kLamb; }
  // Updates the slots with the weighted sum of several gradients, and adds to the variable's norms. The parameters
  // don't change.
  template <typename T = float>
  bool prepare_sum(const UpdateStep& step, ConstValues<T> parameters, WeightedGradients<T> gradients,
                   const std::type_identity_t<SlotSpansOf<T>>& slots, LayerNorms& norms) const;
  // Updates the parameters by the prepared slots. `trust`: LayerNorms::trust() of the whole variable.
  template <typename T = float>
  bool finish(const UpdateStep& step, double trust, Values<T> parameters,
              const std::type_identity_t<SlotSpansOf<T>>& slots) const;

 private:
  template <typename T>
  bool prepare(const UpdateStep& step, std::span<const T> parameters, std::span<const T> gradient,
               const SlotSpansOf<T>& slots, LayerNorms& norms) const;

  OptimizerConfig optimizer_;
  double limit_;
  VectorWidth width_;
};

}  // namespace disttrain::update
