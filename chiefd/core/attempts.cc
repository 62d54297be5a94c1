#include "chiefd/core/attempts.h"

#include <algorithm>

namespace disttrain::chiefd {

std::optional<std::string> difference(const std::map<ShardId, ShardWritten>& written,
                                      const std::vector<Member>& living) {
  const auto clock_at = [](const ShardWritten& shard, const Member& worker) -> std::optional<Step> {
    for (const WorkerEntry& entry : shard.entry.workers)
      if (entry.worker == worker) return entry.clock;
    return std::nullopt;
  };
  if (written.empty()) return "no shard has written";
  const ShardWritten& first = written.begin()->second;
  for (const auto& [id, shard] : written)
    for (const Member& worker : living) {
      const std::optional<Step> here = clock_at(shard, worker);
      const std::optional<Step> there = clock_at(first, worker);
      if (here == there) continue;
      const auto text = [](const std::optional<Step>& step) {
        return step ? "the pushes up to " + std::to_string(step->value) : std::string("no push");
      };
      return "of " + to_string(worker.task) + ", shard " + std::to_string(id.value) + " has " + text(here) +
             ", but shard " + std::to_string(first.shard.value) + " has " + text(there);
    }
  return std::nullopt;
}

}  // namespace disttrain::chiefd
