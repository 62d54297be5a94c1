// Stores the figures that workers report about their own steps, for the status.
#pragma once

#include <cstdint>
#include <map>

#include "common/messages/control.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

class WorkerFigures {
 public:
  void note_steps(const Member& worker, std::uint64_t steps) { steps_[worker] = steps; }
  // Notes the phase times at the end of warm-up. Later calls change nothing.
  void end_warmup(const Member& worker, const PhaseTimes& times) { warmup_times_.try_emplace(worker, times); }
  void forget(const Member& worker);

  // The worker's own steps, as it last reported. 0 before the first report.
  std::uint64_t steps_of(const Member& worker) const;
  // Returns the part of the worker's phase times that was spent since the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;

 private:
  std::map<Member, std::uint64_t> steps_;
  std::map<Member, PhaseTimes> warmup_times_;
};

}  // namespace disttrain::chiefd
