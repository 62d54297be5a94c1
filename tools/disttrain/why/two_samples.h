// What workers and shards did between two answers of the chief (docs/json.md): differences of what they count. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

// Seconds of each kind; `exchange` is push, pull and waiting for answers, in which it waits for other workers too.
struct WorkerSample {
  std::string task;
  std::string host;
  double steps = 0.0;
  double input = 0.0;
  double compute = 0.0;
  double evaluate = 0.0;
  double exchange = 0.0;

  double seconds() const { return input + compute + evaluate + exchange; }  // above 0
};

// Shares of the time, 0 to 1.
struct ShardSample {
  std::string task;  // the ps that holds it
  std::string host;
  int shard = 0;
  double busy = 0.0;      // of its thread
  double applying = 0.0;  // part of it, as the clock says
};

struct TwoSamples {
  std::vector<WorkerSample> workers;
  std::vector<ShardSample> shards;
};

// Of tasks that take part in the same job in both, in the same process. What a task has counted down means that it
// began anew, and it is left out, as what joined between the two.
TwoSamples compare(const Json& before, const Json& after);

}  // namespace disttrain::cli
