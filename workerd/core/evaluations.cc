#include "workerd/core/evaluations.h"

#include "common/check.h"

namespace disttrain::workerd {

void Evaluations::become_evaluator(std::optional<Step> version) {
  if (is_evaluator_) return;
  is_evaluator_ = true;
  if (every_ > 0 && version) evaluated_ = version->value / every_;
}

bool Evaluations::is_due(Step version) {
  if (!is_evaluator_ || every_ == 0) return false;
  if (!evaluated_) evaluated_ = version.value / every_;
  return version.value / every_ > *evaluated_;
}

void Evaluations::run(bool is_final, Step version, Instant now) {
  DISTTRAIN_CHECK(!runs());
  state_ = State::kRun;
  is_final_under_way_ = is_final;
  if (is_final) is_final_wanted_ = false;
  if (every_ > 0) evaluated_ = version.value / every_;
  began_ = now;
}

Evaluated Evaluations::finish(const EvaluationDone& done, Step version, bool holds_training_up, Instant now) {
  DISTTRAIN_CHECK(runs());
  state_ = State::kNone;
  Evaluated evaluated;
  evaluated.step = version;
  evaluated.final = is_final_under_way_;
  evaluated.examples = done.examples;
  evaluated.metrics = done.metrics;
  evaluated.parameters_hash = done.parameters_hash;
  evaluated.notice = done.notice;
  if (done.examples > 0) evaluated.loss = done.loss_sum / static_cast<double>(done.examples);
  evaluated.took = now - began_;
  evaluated.stalled_training = holds_training_up && !is_final_under_way_;
  if (is_final_under_way_) final_ = evaluated;
  is_final_under_way_ = false;
  return evaluated;
}

}  // namespace disttrain::workerd
