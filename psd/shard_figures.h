// What a shard has counted for its metrics. A value: the shard's thread keeps one, and sends a copy of it with each
// report.
#pragma once

#include <cstdint>

#include "common/histogram.h"
#include "common/ids.h"
#include "common/metrics/rpc.h"
#include "common/time.h"

namespace disttrain::psd {

struct ShardFigures {
  std::uint64_t pull_bytes = 0;  // parameters sent to workers
  std::uint64_t push_bytes = 0;  // gradients received
  SecondsHistogram apply;        // one bucket each
  metrics::RpcFigures push;      // one frame each
  metrics::RpcFigures pull;
  metrics::RpcFigures mark;

  // Of the moment.
  std::uint64_t parameters_bytes = 0;
  std::uint64_t queue_depth = 0;  // answers that wait: for the rules of the mode, or for room in a socket
  Step version;
  Duration lived{};
  Duration busy{};  // processor time of its thread since it was made

  // The pacer's.
  std::uint64_t late = 0;  // since the shard was made: what a checkpoint brings was counted before
  StepsHistogram staleness;
};

}  // namespace disttrain::psd
