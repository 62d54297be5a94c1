// How far a job is: the last report of its pacer, and the totals over generations.
#pragma once

#include <cstdint>
#include <optional>

#include "chiefd/core/journal_state.h"
#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::chiefd {

class Progress {
 public:
  // The newest report of this generation's pacer.
  const PacerReport& report() const { return report_; }
  Step step() const { return report_.global_step; }
  // False after this chief has started, until the pacer's first report.
  bool has_heard_pacer() const { return has_heard_pacer_; }
  bool has_stepped(Step first) const { return report_.global_step > first; }
  // False: the report is older than the newest and changes nothing. `first`: the step that the generation began with.
  bool note(Instant now, const PacerReport& report, Step first);
  // Updates the furthest step that was ever reached. True: the newest report went beyond it.
  bool note_furthest();

  // A generation begins with this report.
  void begin(const PacerReport& report);
  // The generation is over: adds its training time, steps and examples to before() and drops its report.
  void drop_generation();
  // The chief was restarted. The job had reached `at_least`; the pacer will report the exact step.
  void take_up(Step at_least, const Training& before);
  // The job ended under a former chief.
  void recall(const EndRecord& end);
  // The job ends at the step that it had reached.
  void end_at(Step step) { report_.global_step = step; }

  // When the job last made a step, or something else excused the lack of a step.
  Instant moved_at() const { return moved_at_; }
  void moved(Instant now) { moved_at_ = now; }
  void excuse(Duration pause) { moved_at_ += pause; }

  // The totals of earlier generations.
  const Training& before() const { return before_; }
  // The totals of all generations. The time excludes evaluations that all workers waited for.
  Training training() const;
  double training_seconds() const;
  std::optional<double> loss() const { return loss_; }
  // Counts the examples that reports have added. A rollback takes nothing back.
  std::uint64_t examples_heard() const { return examples_heard_; }

  void evaluated(const Evaluated& evaluated);
  const std::optional<EvaluationStatus>& evaluation() const { return evaluation_; }
  // The step target of a job that ended under a former chief.
  std::optional<std::uint64_t> steps_at_end() const { return steps_at_end_; }

 private:
  PacerReport report_;
  bool has_heard_pacer_ = true;
  std::optional<double> loss_;  // the newest that a pacer reported
  std::uint64_t examples_heard_ = 0;
  std::optional<std::uint64_t> examples_reported_;  // in this generation; none: no report yet
  Instant moved_at_;
  Step furthest_;
  Training before_;
  double evaluation_seconds_ = 0.0;
  std::optional<EvaluationStatus> evaluation_;
  std::optional<std::uint64_t> steps_at_end_;
};

}  // namespace disttrain::chiefd
