// Finds out what slows a job's steps: a worker, its input, its device, a shard or the network. It judges by two answers
// of the chief (docs/json.md).
#pragma once

#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/why/two_samples.h"

namespace disttrain::cli {

enum class Brake {
  kNoJob,
  kState,    // the job doesn't train now; its state and its reason say why
  kUnknown,  // no worker took part during the whole measurement
  kStall,    // no step ended during the measurement
  // The values below name the part of the step that takes longest.
  kInput,       // waiting for input batches; the sentence names the slow stage of making them
  kCompute,     // computing
  kEvaluation,  // evaluating
  kShard,       // waiting for a busy shard
  kLink,        // waiting for the network
};
const char* to_string(Brake brake);

struct Verdict {
  Brake brake = Brake::kNoJob;
  std::string task;  // the task that slows the job; "" = no single task does
  std::string sentence;
  TwoSamples samples;  // the figures behind the verdict
};

// A straggler is a worker that is clearly slower than the others: its step takes at least kClearly times as long as the
// others' median, and the difference is at least kWorthIt of a step. If the others wait for this worker, all steps take
// equally long. Then the rule compares how long each worker works during a step. Example for sync, where all steps
// take 100 ms:
// 1. worker/0 and worker/1 compute for 60 ms and wait for 40 ms. worker/2 computes for 90 ms. That is 1.5 times as long
//    as 60 ms, and the difference of 30 ms is 30 % of a step. So worker/2 is the straggler.
// 2. If worker/2 computes for 65 ms, that is only 1.08 times as long as 60 ms. So there is no straggler.
inline constexpr double kClearly = 1.3;
inline constexpr double kWorthIt = 0.1;
// A shard slows the job if its thread works for at least kBusy of the time. A less busy shard also slows the job if its
// work for one worker takes at least kExplains of the time in which this worker waits.
inline constexpr double kBusy = 0.7;
inline constexpr double kExplains = 0.5;
// If workers compute for at least this share of a step, only a faster device would help.
inline constexpr double kMostly = 0.7;

// Judges a job by two answers of the chief. `after` is the newer one. If the job doesn't run, only `after` matters.
Verdict judge(const Json& before, const Json& after);
// Returns true if every worker has made enough steps between the two answers to judge by them.
bool is_enough(const Json& before, const Json& after);

// 0.814 -> "81 %".
std::string percent(double share);

}  // namespace disttrain::cli
