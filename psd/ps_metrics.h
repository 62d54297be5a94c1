// A ps's metrics for Prometheus: the last figures of its shards, and counts of the messages that its main loop handled.
// The figures of a job stay after the job's end, until another job begins. Belongs to the main loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/metrics/page.h"
#include "common/metrics/rpc.h"
#include "shards/shard_figures.h"

namespace disttrain::psd {

class PsMetrics {
 public:
  explicit PsMetrics(TaskId task);

  // The ps begins to make these shards of a job. Drops the figures of an earlier job or generation.
  void begin(const std::string& job, const std::string& checkpoint_folder, const std::vector<ShardId>& shards);
  void heard(ShardId shard, const shards::ShardFigures& figures) { shards_[shard] = figures; }
  // Counts of handled messages by name. The names are "Hello" and the names that wire::name_of() returns.
  metrics::RpcBook& requests() { return requests_; }

  void collect(metrics::Page& page) const;

 private:
  void collect_job(metrics::Page& page) const;

  const std::string task_;
  metrics::RpcBook requests_;
  std::string job_;  // "": none yet
  std::string checkpoint_folder_;
  std::map<ShardId, shards::ShardFigures> shards_;
  shards::ShardFigures before_;  // sums over the shards that have ended, for counters that aren't per job
};

}  // namespace disttrain::psd
