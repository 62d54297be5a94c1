// WorkerTrace: what a worker's step thread records for train.profile_steps. The exchange records its frames with the
// same recorder. Make all calls on the step thread.
#pragma once

#include <optional>

#include "common/config/job_config.h"
#include "common/daemon/clock.h"
#include "common/trace/recorder.h"
#include "workerd/core/worker_core.h"

namespace disttrain::workerd {

class WorkerTrace {
 public:
  // May throw std::bad_alloc.
  explicit WorkerTrace(const TrainSection& train) {
    if (train.has_profile()) recorder_.emplace(train.profile_steps);
  }

  // Null if the job has no profile.
  TraceRecorder* recorder() { return recorder_ ? &*recorder_ : nullptr; }
  // True if the worker records now.
  bool is_on() const { return recorder_ && recorder_->is_on(); }

  // Call it after each step of the core. Records the phase that has ended.
  void follow(const Progress& progress) {
    if (!recorder_ || (progress.phase == phase_ && progress.since == since_)) return;
    if (recorder_->is_on() && phase_ != Phase::kIdle && progress.since > since_)
      recorder_->add({.begin = since_, .end = progress.since, .step = step_, .kind = kind_of(phase_)});
    phase_ = progress.phase;
    since_ = progress.since;
    step_ = progress.steps + 1;
  }

  void part_begins() {
    if (is_on()) part_began_ = daemon::now();
  }
  void part_ended(std::uint64_t number) {
    if (is_on() && part_began_ != Instant())
      recorder_->add({.begin = part_began_,
                      .end = daemon::now(),
                      .step = step_,
                      .sequence = Sequence(number),
                      .kind = TraceKind::kPart});
    part_began_ = Instant();
  }
  // The gradients of the first `bytes` bytes of the flat array are final.
  void ready(std::uint64_t bytes) {
    if (!is_on()) return;
    const Instant now = daemon::now();
    recorder_->add({.begin = now, .end = now, .step = step_, .bytes = bytes, .kind = TraceKind::kReady});
  }

  // The worker has the parameters of this global step, and its own step is complete. Returns the events once the last
  // step is done.
  std::optional<TraceTake> reach(Step global) {
    if (!recorder_) return std::nullopt;
    recorder_->reach(global);
    return recorder_->is_due() ? std::optional(recorder_->take()) : std::nullopt;
  }
  // The worker does no further step. Returns the events that it hasn't returned yet.
  std::optional<TraceTake> end() {
    if (!recorder_ || recorder_->is_taken()) return std::nullopt;
    return recorder_->take();
  }

 private:
  static TraceKind kind_of(Phase phase) {
    switch (phase) {
      case Phase::kIdle:
      case Phase::kInput:
        return TraceKind::kInput;
      case Phase::kPull:
        return TraceKind::kPull;
      case Phase::kCompute:
        return TraceKind::kCompute;
      case Phase::kPush:
        return TraceKind::kPush;
      case Phase::kWait:
        return TraceKind::kWait;
      case Phase::kEvaluate:
        return TraceKind::kEvaluate;
    }
    return TraceKind::kInput;
  }

  std::optional<TraceRecorder> recorder_;  // none: the job has no profile
  Phase phase_ = Phase::kIdle;             // the present phase, its begin, and the worker's step in it
  Instant since_;
  std::uint64_t step_ = 0;
  Instant part_began_;
};

}  // namespace disttrain::workerd
