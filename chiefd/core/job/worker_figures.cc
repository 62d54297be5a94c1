#include "chiefd/core/job/worker_figures.h"

#include <algorithm>

namespace disttrain::chiefd {

void WorkerFigures::forget(const Member& worker) {
  steps_.erase(worker);
  warmup_times_.erase(worker);
}

std::uint64_t WorkerFigures::steps_of(const Member& worker) const {
  const auto steps = steps_.find(worker);
  return steps == steps_.end() ? 0 : steps->second;
}

PhaseTimes WorkerFigures::measured_times(const Member& worker, PhaseTimes times) const {
  const auto before = warmup_times_.find(worker);
  if (before == warmup_times_.end()) return times;
  for (std::size_t i = 0; i < std::min(times.size(), before->second.size()); ++i) times[i] -= before->second[i];
  return times;
}

}  // namespace disttrain::chiefd
