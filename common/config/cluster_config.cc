#include "common/config/cluster_config.h"

#include "common/check.h"

namespace disttrain {

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
