// What workers and shards did between two answers of the chief (docs/json.md): differences of what they count. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

// Seconds of each kind. `exchange` is push, pull and waiting for answers, which includes waiting for other workers.
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
  double busy = 0.0;      // processor time of its thread
  double applying = 0.0;  // summing and applying gradients
};

struct TwoSamples {
  std::vector<WorkerSample> workers;
  std::vector<ShardSample> shards;
};

// Compares the tasks that run in the same job, and in the same process, in both answers. Leaves out a task that joined
// in between, and one whose counters went down: it started over.
TwoSamples compare(const Json& before, const Json& after);

}  // namespace disttrain::cli
