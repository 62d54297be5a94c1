#include "chiefd/core/job/facts/worker_figures.h"

#include <algorithm>
#include <cmath>

namespace disttrain::chiefd {

void WorkerFigures::forget(const Member& worker) {
  steps_.erase(worker);
  warmup_times_.erase(worker);
  metrics_.erase(worker);
}

void WorkerFigures::note_metrics(const Member& worker, const std::vector<MetricValue>& metrics) {
  if (!metrics.empty()) metrics_[worker] = metrics;
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

std::vector<MetricValue> WorkerFigures::mean_metrics(const std::vector<Member>& workers) const {
  std::vector<MetricValue> sums;
  std::vector<double> counts;
  for (const Member& worker : workers) {
    const auto known = metrics_.find(worker);
    if (known == metrics_.end()) continue;
    for (std::size_t i = 0; i < known->second.size(); ++i) {
      const MetricValue& metric = known->second[i];
      if (!std::isfinite(metric.value)) continue;
      // All workers of a job have the same model, so their metrics usually have the same order.
      const auto has_its_name = [&metric](const MetricValue& sum) { return sum.name == metric.name; };
      const auto sum = i < sums.size() && has_its_name(sums[i]) ? sums.begin() + static_cast<std::ptrdiff_t>(i)
                                                                : std::find_if(sums.begin(), sums.end(), has_its_name);
      if (sum != sums.end()) {
        sum->value += metric.value;
        counts[static_cast<std::size_t>(sum - sums.begin())] += 1.0;
      } else if (sums.size() < kMaxMetrics) {
        sums.push_back(metric);
        counts.push_back(1.0);
      }
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].value /= counts[i];
  return sums;
}

}  // namespace disttrain::chiefd
