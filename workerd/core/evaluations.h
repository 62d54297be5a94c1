// Evaluations: the evaluations that a worker runs in a job. During training they are due every evaluate.every_steps
// steps, if this worker is the one that evaluates. After training the chief may ask for the final one.
#pragma once

#include <cstdint>
#include <optional>

#include "workerd/core/events.h"

namespace disttrain::workerd {

class Evaluations {
 public:
  // `every`: evaluate.every_steps; 0 = none during training.
  Evaluations(bool is_evaluator, std::uint64_t every) : every_(every), is_evaluator_(is_evaluator) {}

  // This worker evaluates from now on. It doesn't run evaluations that were due before. `version` is that of its
  // parameters, if it has any.
  void become_evaluator(std::optional<Step> version);
  // Whether an evaluation during training is due with parameters of this version. The first call sets the version from
  // which on they are counted, if become_evaluator() hasn't.
  bool is_due(Step version);

  // The chief asks for the final evaluation.
  void want_final() { is_final_wanted_ = !is_final_under_way_; }
  bool is_final_wanted() const { return is_final_wanted_; }
  // The result of the final evaluation; the chief may ask for it again.
  const std::optional<Evaluated>& final_result() const { return final_; }

  // The worker pulls the parameters that it is going to evaluate.
  void pull() { state_ = State::kPull; }
  bool pulls() const { return state_ == State::kPull; }
  // The engine begins to evaluate the parameters of this version.
  void run(bool is_final, Step version, Instant now);
  bool runs() const { return state_ == State::kRun; }
  // The engine is done. `holds_training_up`: the other workers had to wait if this wasn't the final evaluation.
  // REQUIRES: runs().
  Evaluated finish(const EvaluationDone& done, Step version, bool holds_training_up, Instant now);

 private:
  enum class State { kNone, kPull, kRun };

  const std::uint64_t every_;
  bool is_evaluator_;
  bool is_final_wanted_ = false;
  bool is_final_under_way_ = false;
  State state_ = State::kNone;
  // The newest version that was evaluated, divided by every_ and rounded down. Before the first evaluation, the version
  // at which this worker became the evaluator is used instead.
  std::optional<std::uint64_t> evaluated_;
  Instant began_;
  std::optional<Evaluated> final_;
};

}  // namespace disttrain::workerd
