#include "chiefd/core/memory_fit.h"

#include <algorithm>

#include "common/memory_plan.h"
#include "common/update/update_rule.h"

namespace disttrain::chiefd {
namespace {

std::string mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

}  // namespace

MemoryFit::MemoryFit(const Layout& layout, const std::vector<TaskId>& owners, const JobConfig& job,
                     std::uint32_t credits, const std::map<TaskId, std::uint64_t>& memory) {
  const auto slots = static_cast<std::uint32_t>(update::slots_of(job));
  for (std::uint32_t s = 0; s < owners.size(); ++s) {
    Share& share = shares_[owners[s]];
    const auto offered = memory.find(owners[s]);
    share.offered = offered == memory.end() ? 0 : offered->second;
    // Each worker adds the same number of bytes to a shard.
    const std::uint64_t without = bytes_per_shard(layout, ShardId(s), job, slots, 0, credits).total();
    share.fixed += without;
    share.worker += bytes_per_shard(layout, ShardId(s), job, slots, 1, credits).total() - without;
  }
}

std::uint32_t MemoryFit::most_workers(std::uint32_t wanted) const {
  std::uint64_t most = wanted;
  for (const auto& [ps, share] : shares_) {
    if (share.offered == 0) continue;
    if (share.fixed > share.offered) return 0;
    if (share.worker > 0) most = std::min(most, (share.offered - share.fixed) / share.worker);
  }
  return static_cast<std::uint32_t>(most);
}

std::string MemoryFit::why_not(std::uint32_t workers) const {
  for (const auto& [ps, share] : shares_) {
    const std::uint64_t needed = share.fixed + workers * share.worker;
    if (share.offered == 0 || needed <= share.offered) continue;
    return "with " + std::to_string(workers) + (workers == 1 ? " worker" : " workers") + " the job needs " +
           mebibytes(needed) + " at " + to_string(ps) + ", which may use " + mebibytes(share.offered) +
           ": add ps tasks, or raise memory in its [[ps]] (`disttrain plan` prints how much memory a job needs)";
  }
  return "";
}

std::uint32_t wanted_places(std::uint32_t roster, std::uint32_t listed, bool takes_unlisted) {
  constexpr std::uint32_t kUnlisted = 16;
  return std::max(roster, listed) + (takes_unlisted ? kUnlisted : 0);
}

}  // namespace disttrain::chiefd
