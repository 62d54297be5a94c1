// What the pacer counts: steps, examples, loss, training time, late and non-finite gradients. It is told of each step
// once, in order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/config/job_config.h"
#include "common/histogram.h"
#include "common/messages/control.h"
#include "common/time.h"
#include "psd/core/ledger.h"

namespace disttrain::psd {

// One step as it was applied or skipped.
struct StepDone {
  std::uint64_t examples = 0;
  double loss = 0.0;       // mean over its examples; a value that isn't finite is left out of the mean
  double staleness = 0.0;  // steps between pull and use
  bool skipped = false;
};

// Mean over the most recent values.
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
  // `restored`: report of the checkpoint that the job continues from. Times and means start anew.
  Pacer(const NonfiniteConfig& nonfinite, std::uint64_t warmup_steps, std::uint64_t records,
        const PacerReport& restored);

  void step_done(Instant now, const StepDone& step);
  void late() { ++late_; }
  // Steps between the pull and the use of one gradient.
  void note_staleness(std::uint64_t steps) { gradient_staleness_.observe(static_cast<double>(steps)); }
  const StepsHistogram& gradient_staleness() const { return gradient_staleness_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }

  // Why the job must fail, or none: too many steps in a row weren't finite.
  std::optional<std::string> verdict() const;

  PacerReport report(bool finished) const;

 private:
  const NonfiniteConfig nonfinite_;
  const std::uint64_t first_measured_;  // steps after this one are measured

  Ledger ledger_;
  std::uint64_t steps_ = 0;
  std::uint64_t examples_ = 0;
  std::uint64_t examples_before_ = 0;  // examples of the steps that aren't measured
  Instant began_{};
  Instant last_{};
  RecentMean loss_;
  RecentMean staleness_;
  StepsHistogram gradient_staleness_;
  std::uint64_t late_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint32_t skipped_in_row_ = 0;
};

}  // namespace disttrain::psd
