// Stores the figures that workers report about their own steps, for the status.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/messages/control.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

class WorkerFigures {
 public:
  void note_steps(const Member& worker, std::uint64_t steps) { steps_[worker] = steps; }
  // Notes the phase times at the end of warm-up. Later calls change nothing.
  void end_warmup(const Member& worker, const PhaseTimes& times) { warmup_times_.try_emplace(worker, times); }
  // Notes the metrics of the worker's newest steps. A list without metrics changes nothing.
  void note_metrics(const Member& worker, const std::vector<MetricValue>& metrics);
  void forget(const Member& worker);

  // The worker's own steps, as it last reported. 0 before the first report.
  std::uint64_t steps_of(const Member& worker) const;
  // Returns the part of the worker's phase times that was spent since the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;
  // The mean of each metric over these workers. A worker whose value isn't finite doesn't count for the metric. Returns
  // at most kMaxMetrics metrics, and none that isn't finite at any worker.
  std::vector<MetricValue> mean_metrics(const std::vector<Member>& workers) const;

 private:
  std::map<Member, std::uint64_t> steps_;
  std::map<Member, PhaseTimes> warmup_times_;
  std::map<Member, std::vector<MetricValue>> metrics_;
};

}  // namespace disttrain::chiefd
