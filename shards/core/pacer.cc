#include "shards/core/pacer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/mutant.h"

namespace disttrain::shards {

void RecentMean::add(double value) {
  values_[count_++ % kValues] = value;
}

double RecentMean::mean() const {
  const std::size_t held = std::min(count_, kValues);
  if (held == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  for (std::size_t i = 0; i < held; ++i) sum += values_[i];
  return sum / static_cast<double>(held);
}

// The training time is measured from the end of step `first_measured_`: the last warm-up step, or the first step after
// the job's start or restore, whichever comes later. The time of that first step can't be measured, because the pacer
// doesn't know when the step began.
Pacer::Pacer(const NonfiniteConfig& nonfinite, std::uint64_t warmup_steps, std::uint64_t records,
             const PacerReport& restored)
    : nonfinite_(nonfinite),
      first_measured_(std::max(warmup_steps, restored.global_step.value + 1)),
      ledger_(records),
      steps_(restored.global_step.value),
      examples_(restored.examples),
      late_(restored.late),
      skipped_(restored.skipped) {
  if (DISTTRAIN_MUTANT(kRestoredLedgerLost)) return;
  ledger_.restore(restored.complete_epochs, restored.ledger);
}

void Pacer::step_done(Instant now, const StepDone& step) {
  ++steps_;
  examples_ += step.examples;
  last_ = now;
  if (steps_ == first_measured_) {
    began_ = now;
    examples_before_ = examples_;
  }
  staleness_.add(step.staleness);
  if (step.skipped) {
    ++skipped_;
    ++skipped_in_row_;
  } else {
    skipped_in_row_ = 0;
    if (std::isfinite(step.loss)) loss_.add(step.loss);
  }
}

std::optional<std::string> Pacer::verdict() const {
  if (skipped_in_row_ == 0) return std::nullopt;
  const std::string at = " at global step " + std::to_string(steps_);
  if (nonfinite_.action == NonfiniteAction::kFail)
    return "a loss, a gradient or a state variable wasn't finite" + at +
           "; train.nonfinite.action is \"fail\". A smaller learning rate or clipping may help";
  if (nonfinite_.limit > 0 && skipped_in_row_ >= nonfinite_.limit)
    return "losses, gradients or state variables of " + std::to_string(skipped_in_row_) +
           " steps in a row weren't finite" + at + "; train.nonfinite.limit is " + std::to_string(nonfinite_.limit) +
           ". A smaller learning rate or clipping may help";
  return std::nullopt;
}

PacerReport Pacer::report(bool finished) const {
  const bool measuring = steps_ >= first_measured_;
  const double staleness = staleness_.mean();
  return PacerReport{
      .global_step = Step(steps_),
      .examples = examples_,
      .training = measuring ? last_ - began_ : Duration{},
      .measured_steps = measuring ? steps_ - first_measured_ : 0,
      .measured_examples = measuring ? examples_ - examples_before_ : 0,
      .loss = loss_.mean(),
      .late = late_,
      .skipped = skipped_,
      .skipped_in_row = skipped_in_row_,
      .complete_epochs = ledger_.complete_epochs(),
      .ledger = ledger_.open_epochs(),
      .finished = finished,
      .staleness = std::isnan(staleness) ? 0.0 : staleness,
      .slowest_clock = {},
  };
}

}  // namespace disttrain::shards
