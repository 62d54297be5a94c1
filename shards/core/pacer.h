// Counts what the pacer reports to the chief: steps, examples, loss, training time, and the gradients that were late or
// not finite. The core reports each step to it once, in order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/config/job_config.h"
#include "common/histogram.h"
#include "common/messages/control.h"
#include "common/time.h"
#include "shards/core/ledger.h"

namespace disttrain::shards {

// A step that was applied or skipped.
struct StepDone {
  std::uint64_t examples = 0;
  double loss = 0.0;       // mean over the step's examples; the pacer ignores a value that isn't finite
  double staleness = 0.0;  // mean over the step's gradients; see Pacer::note_staleness()
  bool skipped = false;
};

// The mean over the last kValues values.
class RecentMean {
 public:
  static constexpr std::size_t kValues = 50;
  void add(double value);
  double mean() const;  // NaN before the first value

 private:
  std::array<double, kValues> values_{};
  std::size_t count_ = 0;
};

class Pacer {
 public:
  // `restored`: the report in the checkpoint that the job continues from. The counts continue from there; the training
  // time and the recent means start empty.
  Pacer(const NonfiniteConfig& nonfinite, std::uint64_t warmup_steps, std::uint64_t records,
        const PacerReport& restored);

  void step_done(Instant now, const StepDone& step);
  void late() { ++late_; }
  // Notes one gradient. `steps`: how many other steps the job has made since the gradient's worker pulled parameters.
  void note_staleness(std::uint64_t steps) { gradient_staleness_.observe(static_cast<double>(steps)); }
  const StepsHistogram& gradient_staleness() const { return gradient_staleness_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }

  // The reason why the job must fail, if too many steps in a row weren't finite; none if the job may continue.
  std::optional<std::string> verdict() const;

  PacerReport report(bool finished) const;

 private:
  const NonfiniteConfig nonfinite_;
  const std::uint64_t first_measured_;  // training time is measured from the end of this step

  Ledger ledger_;
  std::uint64_t steps_ = 0;
  std::uint64_t examples_ = 0;
  std::uint64_t examples_before_ = 0;  // examples of the steps up to first_measured_
  Instant began_{};
  Instant last_{};
  RecentMean loss_;
  RecentMean staleness_;
  StepsHistogram gradient_staleness_;
  std::uint64_t late_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint32_t skipped_in_row_ = 0;
};

}  // namespace disttrain::shards
