// How far a job has come: the newest report of its pacer, and the totals over all generations.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::chiefd {

class Progress {
 public:
  // The newest report of this generation's pacer.
  const PacerReport& report() const { return report_; }
  Step step() const { return report_.global_step; }
  // False from a restart of the chief until the pacer's first report.
  bool has_heard_pacer() const { return has_heard_pacer_; }
  bool has_stepped(Step first) const { return report_.global_step > first; }
  // Notes a report. Returns false, and changes nothing, if a newer report is known. `first` is the step that the
  // generation began with.
  bool note(Instant now, const PacerReport& report, Step first);
  // Updates the furthest step that the job ever reached. Returns true if the newest report has moved it forward.
  bool note_furthest();

  // A generation begins with this report.
  void begin(const PacerReport& report);
  // The generation is over: adds its training time, steps and examples to before() and drops its report.
  void drop_generation();
  // Called after a restart of the chief. The job has reached at least the step `at_least`. The pacer will report the
  // exact step.
  void take_up(Step at_least, const Training& before);
  // Restores the figures of a job that ended before a restart of the chief.
  void recall(const EndRecord& end);
  // Restores the newest evaluation from before a restart of the chief.
  void recall_evaluation(const EvaluationStatus& evaluation) { evaluation_ = evaluation; }
  // Called when the job ends. `step` is the last step that it reached.
  void end_at(Step step) { report_.global_step = step; }

  // When the job last made a step, or when it last had an excuse for making no step, such as the end of a pause.
  Instant moved_at() const { return moved_at_; }
  void moved(Instant now) { moved_at_ = now; }
  void excuse(Duration pause) { moved_at_ += pause; }
  // A worker was lost. This excuses the job for making no step: the worker may have been the one that the others waited
  // for, and has to come back first. Later than `limit` after the first loss since the last step, a loss is no excuse
  // any more, so that a job whose workers are lost for ever ends.
  void excuse_loss(Instant now, Duration limit);
  // True if a worker was lost since the last step.
  bool has_lost_since_step() const { return first_loss_at_.has_value(); }

  // The totals of earlier generations.
  const Training& before() const { return before_; }
  // The totals of all generations. The time doesn't include evaluations that all workers waited for.
  Training training() const;
  double training_seconds() const;
  std::optional<double> loss() const { return loss_; }
  // The number of examples in all reports together. A rollback doesn't make it smaller.
  std::uint64_t examples_heard() const { return examples_heard_; }

  // Notes that all workers waited while one of them evaluated.
  void note_stalled(const Evaluated& evaluated);
  // Sets the evaluation that the status shows.
  void show_evaluation(EvaluationStatus evaluation) { evaluation_ = std::move(evaluation); }
  const std::optional<EvaluationStatus>& evaluation() const { return evaluation_; }
  // The step target, and the training metrics, of a job that ended before a restart of the chief.
  std::optional<std::uint64_t> steps_at_end() const { return steps_at_end_; }
  const std::optional<std::vector<MetricValue>>& metrics_at_end() const { return metrics_at_end_; }

 private:
  PacerReport report_;
  bool has_heard_pacer_ = true;
  std::optional<double> loss_;  // the newest loss that a pacer reported
  std::uint64_t examples_heard_ = 0;
  std::optional<std::uint64_t> examples_reported_;  // by this generation; none before its first report
  Instant moved_at_;
  std::optional<Instant> first_loss_at_;  // since the last step
  Step furthest_;
  Training before_;
  Duration evaluation_time_{};  // all evaluations that lie within the time of training
  Duration unfollowed_{};       // of evaluations after the newest step
  std::optional<EvaluationStatus> evaluation_;
  std::optional<std::uint64_t> steps_at_end_;
  std::optional<std::vector<MetricValue>> metrics_at_end_;
};

}  // namespace disttrain::chiefd
