// The numbers that a shard counts for its metrics. The shard's thread keeps one ShardFigures and sends a copy of it
// with each report.
#pragma once

#include <cstdint>

#include "common/histogram.h"
#include "common/ids.h"
#include "common/metrics/rpc.h"
#include "common/time.h"

namespace disttrain::shards {

struct ShardFigures {
  std::uint64_t pull_bytes = 0;  // parameters sent to workers
  std::uint64_t push_bytes = 0;  // gradients received
  SecondsHistogram apply;        // one observation per bucket
  metrics::RpcFigures push;      // one request per frame
  metrics::RpcFigures pull;
  metrics::RpcFigures mark;

  // Current values.
  std::uint64_t parameters_bytes = 0;
  std::uint64_t queue_depth = 0;  // number of answers that are parked or wait for room in a socket
  Step version;
  Duration lived{};
  Duration busy{};  // CPU time that the shard's thread has used since the shard was made

  // Of the pacer only.
  std::uint64_t late = 0;  // number of late pushes since the shard was made
  StepsHistogram staleness;
};

}  // namespace disttrain::shards
