// A ps's metrics for Prometheus: the last figures of its shards, and the messages of its main loop. A job's figures
// stay after its end, until another job comes. Belongs to the main loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/metrics/page.h"
#include "common/metrics/rpc.h"
#include "psd/shard_figures.h"

namespace disttrain::psd {

class PsMetrics {
 public:
  explicit PsMetrics(TaskId task);

  // A job's shards will be made on this ps. Drops the figures of another job or an earlier generation.
  void begin(const std::string& job, const std::string& checkpoint_folder, const std::vector<ShardId>& shards);
  void heard(ShardId shard, const ShardFigures& figures) { shards_[shard] = figures; }
  // Names are "Hello" and those of wire::name_of().
  metrics::RpcBook& requests() { return requests_; }

  void collect(metrics::Page& page) const;

 private:
  void collect_job(metrics::Page& page) const;

  const std::string task_;
  metrics::RpcBook requests_;
  std::string job_;  // "": none yet
  std::string checkpoint_folder_;
  std::map<ShardId, ShardFigures> shards_;
  ShardFigures before_;  // figures of ended shards, for counters that aren't per job
};

}  // namespace disttrain::psd
