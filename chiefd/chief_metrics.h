// The chief's metrics for Prometheus: the core's status, read at each scrape, and what only the shell counts. Belongs
// to the loop.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "chiefd/core/cluster.h"
#include "chiefd/core/goodput.h"
#include "common/config/cluster_config.h"
#include "common/metrics/page.h"
#include "common/metrics/rpc.h"
#include "transport/wire/codec.h"

namespace disttrain::chiefd {

class ChiefMetrics {
 public:
  // Both outlive this.
  ChiefMetrics(const ClusterConfig& config, const Cluster& cluster);

  // Samples what the job's time is used for. Call this once per heartbeat interval.
  void look(Instant now);
  // A task joined, and its hello said this hash of its cluster file.
  void joined(TaskId task, std::uint64_t cluster_hash) { hashes_[task] = cluster_hash; }
  // Counts jobs by their end. It is told of each event, because a next job may start between two scrapes.
  void hear(const EventRecord& event);
  // `name`: "Hello", or the message's wire::name_of().
  metrics::RpcFigures& requests(const std::string& name) { return requests_.of(name); }

  void collect(Instant now, std::int64_t wall_nanoseconds, metrics::Page& page) const;

 private:
  void collect_tasks(Instant now, double unix_now, metrics::Page& page) const;
  void collect_job(const JobStatus& status, double unix_now, metrics::Page& page) const;
  void collect_checkpoints(const JobStatus& status, double unix_now, metrics::Page& page) const;

  const ClusterConfig& config_;
  const Cluster& cluster_;
  std::map<TaskId, std::uint64_t> hashes_;
  metrics::RpcBook requests_;
  std::map<std::string, std::uint64_t> ended_;  // jobs, by their last state
  std::optional<JobId> job_;                    // the job that goodput_ belongs to
  Goodput goodput_;
};

}  // namespace disttrain::chiefd
