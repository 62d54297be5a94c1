// What the chief tells a Prometheus: read off the core's status at each scrape, and what only the shell counts. Belongs
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
  // Both outlive it.
  ChiefMetrics(const ClusterConfig& config, const Cluster& cluster);

  // Now and then: looks at what the job's time is used for.
  void look(Instant now);
  // A task's hello was taken, which said that hash of its cluster file.
  void joined(TaskId task, std::uint64_t cluster_hash) { hashes_[task] = cluster_hash; }
  // Jobs that end are counted: they may be followed before anybody looks.
  void hear(const EventRecord& event);
  // "Hello", or as wire::name_of().
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
  std::optional<JobId> job_;                    // that goodput_ is of
  Goodput goodput_;
};

}  // namespace disttrain::chiefd
