#include "chiefd/core/job/facts/checkpoint_stats.h"
#include "common/format_duration.h"

#include <algorithm>

namespace disttrain::chiefd {
namespace {

// The cost of one attempt. Each duration is that of the slowest shard. `bytes` is the sum over all shards.
struct Costs {
  Duration cut{};
  Duration parked{};
  Duration writing{};
  std::uint64_t bytes = 0;
};

Costs costs_of(const Attempt& attempt) {
  Costs costs;
  for (const auto& [shard, written] : attempt.written) {
    costs.cut = std::max(costs.cut, written.cut);
    costs.parked = std::max(costs.parked, written.parked);
    costs.writing = std::max(costs.writing, written.writing);
    costs.bytes += written.file.bytes;
  }
  return costs;
}

}  // namespace

void CheckpointStats::note_committed(const Attempt& attempt, Instant now) {
  const Costs costs = costs_of(attempt);
  figures_.cut.observe(to_seconds(costs.cut));
  figures_.park.observe(to_seconds(costs.parked));
  figures_.write.observe(to_seconds(costs.writing));
  figures_.commit.observe(to_seconds(now - attempt.commit_began));
  figures_.bytes = costs.bytes;
  committed_at_ = now;
}

CheckpointFigures CheckpointStats::figures(Instant now) const {
  CheckpointFigures figures = figures_;
  if (committed_at_) figures.age = now - *committed_at_;
  return figures;
}

std::string describe_costs(const Attempt& attempt, Instant now) {
  const Costs costs = costs_of(attempt);
  return std::to_string(costs.bytes) + " bytes in " + format_duration(now - attempt.began) +
         "; the longest that any shard was blocked by its copy: " + format_duration(costs.cut) +
         ", waited for marks: " + format_duration(costs.parked) + ", wrote its file: " + format_duration(costs.writing);
}

}  // namespace disttrain::chiefd
