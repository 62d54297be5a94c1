// PhaseClock: what a worker has done, and how long it was in each phase.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::workerd {

// A worker's progress, for heartbeats.
struct Progress {
  Phase phase = Phase::kIdle;
  Instant since{};  // time at which the phase began
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  double loss = 0.0;  // loss of the newest step; NaN before the first step
  std::array<Duration, kPhases> times{};
};

// REQUIRES of all functions: `now` is never before that of an earlier call.
class PhaseClock {
 public:
  explicit PhaseClock(Instant now) {
    progress_.since = now;
    progress_.loss = std::numeric_limits<double>::quiet_NaN();
  }

  const Progress& progress() const { return progress_; }

  // The worker is in this phase from now on. If it is in it already, nothing changes.
  void enter(Phase phase, Instant now) {
    if (progress_.phase == phase) return;
    note(now);
    progress_.phase = phase;
  }

  // A computation begins; the one before may have ended in the same phase. A ps that doesn't answer must not look like
  // a worker that computes too long. So the phase is kWait as long as answers are under way (`is_early`). How much of
  // this time was computed is known only when the computation has ended.
  void begin_compute(bool is_early, Instant now) {
    enter(is_early ? Phase::kWait : Phase::kCompute, now);
    note(now);
  }
  // The computation began early, and has all its parameters now.
  void note_all_parameters(Instant now) {
    overlapped_ = now - progress_.since;
    progress_.phase = Phase::kCompute;
    progress_.since = now;
  }
  // The computation has ended. For the time `waited` of it the engine waited for parameters. The next computation may
  // begin at once, so the phase may stay the same for many steps.
  void end_compute(Duration waited, Instant now) {
    const Duration whole = std::exchange(overlapped_, Duration::zero()) + (now - progress_.since);
    waited = std::min(waited, whole);
    time_of(Phase::kCompute) += whole - waited;
    time_of(Phase::kWait) += waited;
    progress_.since = now;
  }

  void count_step(std::uint64_t examples) {
    ++progress_.steps;
    progress_.examples += examples;
  }
  void set_loss(double loss) { progress_.loss = loss; }

 private:
  Duration& time_of(Phase phase) { return progress_.times[static_cast<std::size_t>(phase)]; }
  // Counts the time until now for the phase.
  void note(Instant now) {
    time_of(progress_.phase) += now - progress_.since;
    progress_.since = now;
  }

  Progress progress_;
  Duration overlapped_{};  // how long the computation ran before all parameters were there
};

}  // namespace disttrain::workerd
