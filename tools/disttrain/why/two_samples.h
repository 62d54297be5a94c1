// Computes what workers and shards did between two answers of the chief (docs/json.md): the differences of their
// counters.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "common/messages/control.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// How many seconds a worker spent in each phase between the two answers. `exchange` is pushing, pulling and waiting for
// answers. It includes the time in which this worker waits for other workers.
struct WorkerSample {
  std::string task;
  std::string host;
  double steps = 0.0;
  double input = 0.0;
  double compute = 0.0;
  double evaluate = 0.0;
  double exchange = 0.0;
  // How many seconds its input threads spent in each stage of making batches from files: kDataStages in
  // common/messages/control.h. 0 if the records are in memory.
  std::array<double, kDataStages.size()> stages{};

  double seconds() const { return input + compute + evaluate + exchange; }  // above 0
};

// The figures of a shard between the two answers.
struct ShardSample {
  std::string task;  // the ps that has the shard
  std::string host;
  int shard = 0;
  double busy = 0.0;      // how much of the time its thread used a processor, 0 to 1
  double applying = 0.0;  // how much of the time it summed and applied gradients, 0 to 1
};

struct TwoSamples {
  std::vector<WorkerSample> workers;
  std::vector<ShardSample> shards;
};

// Compares the counters of each task in both answers. Leaves out a task that joined the job between the two answers,
// and a task that another process runs now. Also leaves out a task whose counters are lower now, because it has started
// over.
TwoSamples compare(const Json& before, const Json& after);

}  // namespace disttrain::cli
