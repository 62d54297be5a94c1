// Runs a job on a simulated cluster, and says how long a step takes and why. All cores are the real ones, and all
// messages have their real sizes. But no tensor bytes exist, updates and the reading of data take no time, nothing
// fails, and shards don't send the frames that keep idle channels alive. The same options give the same report, apart
// from the measured times of the cores.
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"
#include "scale/meter.h"
#include "scale/network.h"
#include "scale/surroundings.h"

namespace disttrain::scale {

struct RunOptions {
  std::uint32_t workers = 1;  // 1 .. kMaxWorkers
  // The number of shards that each ps offers, at least 1. There is at least one ps.
  std::vector<std::uint32_t> ps_threads = {1};
  // run() takes the model, the mode and the placement from the job, and the batch size for leases. It takes no
  // checkpoints and no evaluations, and sets the number of steps itself.
  JobConfig job;
  ModelSpec model;
  std::uint64_t records = 1'000'000;  // number of records in an epoch
  LinkSpeed speed;
  Duration compute{};       // time that a worker computes in each step
  std::uint64_t steps = 1;  // number of steps that are measured, after one step of warm-up; at least 1
  ReadClock clock = nullptr;
};

// What a task has sent and received in the measured steps.
struct HostLoad {
  TaskId task;
  std::array<Carried, kTraffics> sent{};      // by Traffic
  std::array<Carried, kTraffics> received{};  // by Traffic

  Carried total_sent() const { return sent[0] + sent[1] + sent[2]; }
  Carried total_received() const { return received[0] + received[1] + received[2]; }
};

// The times of the real code in the measured steps.
struct CoreTimes {
  Spent chief_core;
  Spent chief_codec;
  Spent ps_cores;      // of all ps
  Spent worker_cores;  // of all workers
};

struct RunReport {
  std::uint32_t shards = 0;
  std::uint64_t buckets = 0;
  std::uint64_t parameter_bytes = 0;

  Duration startup{};              // virtual time until the first step was done
  Duration measured{};             // virtual time of the measured steps
  std::uint64_t steps = 0;         // measured steps of each worker
  std::uint64_t global_steps = 0;  // measured global steps
  Duration step_median{};
  Duration step_p90{};
  // The shortest time that a step can take because of the cards and the computation alone: see find_bound() in
  // cluster_run.cc.
  Duration bound{};
  Duration worker_bound{};  // of a worker's card and computation, as if it were alone
  Duration ps_bound{};      // of the busiest ps's card, in sync with a worker's card and computation
  StepParts parts;          // mean of a step; all 0 with train.pipeline

  std::vector<HostLoad> loads;  // of all tasks
  std::size_t busiest = 0;      // index in `loads` of the card with the busiest direction
  bool is_busiest_sending = false;
  double busiest_share = 0.0;  // of the measured time

  CoreTimes cores;
  double chief_share = 0.0;  // time of the chief's core and codec per measured time
  std::uint64_t events = 0;  // of the whole run
};

// kConfig: the job doesn't fit the cluster. kFailed: the simulated job failed.
Result<RunReport> run(const RunOptions& options);

}  // namespace disttrain::scale
