// Measures how long the engine of a job takes for a step, without messages and updates: `disttrain bench step` starts
// workerd in this role. It needs no cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workerd/prepared_job.h"

namespace disttrain::workerd {

struct StepBenchOptions {
  std::string job;                // the job file
  std::vector<std::string> sets;  // overrides of the job: "section.key=value"
  std::uint32_t threads = 1;      // number of compute threads, at least 1; with 1, everything runs on one core
  std::uint32_t rounds = 5;       // at least 1
  bool is_random = false;         // true: random records instead of the job's data; only for builtin models
  bool is_json = false;
};

// Computes steps with the job's batch size, on records in random order, and prints the results to stdout (docs/json.md,
// "bench step"). Errors: those of reading the job and of prepare_job(); kConfig if random records are asked for a model
// that isn't a builtin one; kTemporary if SIGINT or SIGTERM has ended the work.
Status bench_step(const StepBenchOptions& options, const EngineFactory& make_engine);

}  // namespace disttrain::workerd
