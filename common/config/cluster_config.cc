#include "common/config/cluster_config.h"

#include <algorithm>

#include "common/check.h"

namespace disttrain {

std::uint32_t max_connections_of(const ClusterConfig& cluster, std::uint32_t threads) {
  if (cluster.transport.max_connections != 0) return cluster.transport.max_connections;
  constexpr std::uint64_t kOthers = 1024;
  constexpr std::uint64_t kMost = 1'000'000;
  const std::uint64_t workers = cluster.allow_unlisted_workers ? kMaxWorkers : cluster.workers.size();
  const std::uint64_t tasks = workers + cluster.ps.size() + cluster.evaluators.size();
  const std::uint64_t shards = std::uint64_t{threads} * std::max<std::uint64_t>(1, cluster.ps.size());
  const std::uint64_t needed = threads == 0 ? tasks : workers * threads + shards;
  return static_cast<std::uint32_t>(std::min(kMost, 2 * needed + kOthers));
}

const std::string& address_of(const ClusterConfig& cluster, TaskId task) {
  switch (task.role) {
    case Role::kChief:
      break;
    case Role::kPs:
      DISTTRAIN_CHECK_LT(task.index, cluster.ps.size());
      return cluster.ps[task.index].address;
    case Role::kWorker:
      DISTTRAIN_CHECK_LT(task.index, cluster.workers.size());
      return cluster.workers[task.index].address;
    case Role::kEvaluator:
      DISTTRAIN_CHECK_LT(task.index, cluster.evaluators.size());
      return cluster.evaluators[task.index].address;
  }
  return cluster.chief.address;
}

const WorkerConfig& compute_config_of(const ClusterConfig& cluster, TaskId task) {
  static const WorkerConfig kDefaults;
  const std::vector<WorkerConfig>& tasks = task.role == Role::kEvaluator ? cluster.evaluators : cluster.workers;
  return task.index < tasks.size() ? tasks[task.index] : kDefaults;
}

}  // namespace disttrain
