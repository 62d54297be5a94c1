// The chief's metrics for Prometheus. Each scrape reads the core's status and adds the figures that the shell counts,
// such as requests by kind. Only the chief's loop may use this class.
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

// True if the task is connected and works for this chief: ready, running or busy.
bool is_up(const TaskStatus& task);

class ChiefMetrics {
 public:
  // `config` and `cluster` must outlive this object.
  ChiefMetrics(const ClusterConfig& config, const Cluster& cluster);

  // Measures what the job has used its time for since the previous call (goodput.h). Call this once per heartbeat
  // interval.
  void look(Instant now);
  // Notes the hash of the task's cluster file, which the task has sent with its hello.
  void joined(TaskId task, std::uint64_t cluster_hash) { hashes_[task] = cluster_hash; }
  // Counts ended jobs by their final state. Call this for each event, because a job may end, and the next one start,
  // between two scrapes.
  void hear(const EventRecord& event);
  // The figures of one kind of request. `name` is "Hello", or the name of the message (wire::name_of()).
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
  std::map<std::string, std::uint64_t> ended_;  // the number of ended jobs, by final state
  std::optional<JobId> job_;                    // the job whose time goodput_ measures
  Goodput goodput_;
};

}  // namespace disttrain::chiefd
