#include "tests/sim/laws.h"

#include <algorithm>

namespace disttrain::sim {

void Laws::final_parameters(const JobConfig& job, const Layout& layout, const std::vector<float>& flat) {
  const bool adds_up = job.train.mode != Mode::kSync && job.data.sharding == Sharding::kLease && job.train.steps == 0;
  if (!adds_up || is_any_worker_lost_) return;
  float sum = 0.0F;
  for (std::uint64_t record = 0; record < jobs_.records; ++record) sum += value_of(record);
  for (std::uint64_t e = 0; e < element_count(layout.model); ++e) {
    const float expected = -sum * static_cast<float>(job.train.epochs) * coefficient(e);
    if (flat[e] != expected)
      return violated("I5, I11: element " + std::to_string(e) + " of the final parameters is " +
                      std::to_string(flat[e]) + "; all records add up to " + std::to_string(expected));
  }
}

void Laws::computes(const std::string& job_and_generation, const JobConfig& job, std::uint32_t worker,
                    std::uint64_t clock) {
  // With leases a worker that waits for one is out of the others' sight, and comes back with a clock of its own.
  if (job.train.mode != Mode::kSsp || job.data.sharding == Sharding::kLease || is_any_worker_lost_) return;
  auto& clocks = clocks_[job_and_generation];
  clocks[worker] = clock;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::uint64_t slowest = std::min_element(clocks.begin(), clocks.end(), less)->second;
  // It computes step `clock` once its push of clock - 1 was answered; the slowest may be about to push its own.
  const std::uint64_t bound = job.train.staleness + 1 + job.train.pipeline;
  if (clock > slowest + bound)
    violated("I9: worker " + std::to_string(worker) + " computes step " + std::to_string(clock) +
             " while the slowest is at " + std::to_string(slowest) + ", staleness " +
             std::to_string(job.train.staleness));
}

void Laws::finished(const JobConfig& job, std::uint64_t examples) {
  if (job.data.sharding != Sharding::kLease || job.train.steps != 0) return;
  const std::uint64_t expected = job.train.epochs * jobs_.records;
  if (examples != expected)
    violated("I11: the finished job has visited " + std::to_string(examples) + " examples; " +
             std::to_string(expected) + " are in its epochs");
}

}  // namespace disttrain::sim
