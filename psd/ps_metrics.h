// What a ps tells a Prometheus: the figures that its shards sent last, and the messages of its main loop. Those of a
// job stay after its end, until another one comes. Belongs to the main loop.
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

  // A job's shards will be made here; what was known of another one, or of its generation before, is dropped.
  void begin(const std::string& job, const std::string& checkpoint_folder, const std::vector<ShardId>& shards);
  void heard(ShardId shard, const ShardFigures& figures) { shards_[shard] = figures; }
  // Names: "Hello", or as wire::name_of().
  metrics::RpcBook& requests() { return requests_; }

  void collect(metrics::Page& page) const;

 private:
  void collect_job(metrics::Page& page) const;

  const std::string task_;
  metrics::RpcBook requests_;
  std::string job_;  // "": none yet
  std::string checkpoint_folder_;
  std::map<ShardId, ShardFigures> shards_;
  ShardFigures before_;  // of shards that are gone: what isn't counted by job goes on
};

}  // namespace disttrain::psd
