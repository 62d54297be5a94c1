// How far a job is: what its pacer reported last, and what adds up over generations.
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
  // Older reports change nothing: false. `first`: the step that the generation began with.
  bool note(Instant now, const PacerReport& report, Step first);
  // The furthest step that was ever reached. True: this report reached it.
  bool note_furthest();

  // A generation begins with this.
  void begin(const PacerReport& report);
  // The generation is over: what it trained is kept, its report is void.
  void drop_generation();
  // The chief was restarted. At least so far; the pacer will say.
  void take_up(Step at_least, const Training& before);
  // The job ended under another chief.
  void recall(const EndRecord& end);
  // What the job had come to when it was lost is its end.
  void end_at(Step step) { report_.global_step = step; }

  // When it moved last: a step, or anything else that excuses the lack of one.
  Instant moved_at() const { return moved_at_; }
  void moved(Instant now) { moved_at_ = now; }
  void excuse(Duration pause) { moved_at_ += pause; }

  // Of generations before this one.
  const Training& before() const { return before_; }
  // Of all generations, without evaluations that all waited for.
  Training training() const;
  double training_seconds() const;
  std::optional<double> loss() const { return loss_; }
  // Examples of reports, as they grew; a rollback takes nothing back.
  std::uint64_t examples_heard() const { return examples_heard_; }

  void evaluated(const Evaluated& evaluated);
  const std::optional<EvaluationStatus>& evaluation() const { return evaluation_; }
  // What the job's target was, of a job that ended under another chief.
  std::optional<std::uint64_t> steps_at_end() const { return steps_at_end_; }

 private:
  PacerReport report_;
  bool has_heard_pacer_ = true;
  std::optional<double> loss_;  // the newest that a pacer told
  std::uint64_t examples_heard_ = 0;
  std::optional<std::uint64_t> examples_reported_;  // in this generation; none: this chief heard of none
  Instant moved_at_;
  Step furthest_;
  Training before_;
  double evaluation_seconds_ = 0.0;
  std::optional<EvaluationStatus> evaluation_;
  std::optional<std::uint64_t> steps_at_end_;
};

}  // namespace disttrain::chiefd
