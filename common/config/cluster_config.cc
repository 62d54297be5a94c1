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
  }
  return cluster.chief.address;
}

}  // namespace disttrain
