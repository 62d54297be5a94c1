// What slows a job's steps, judged by two answers of the chief (docs/json.md): a worker, its input, its device, a shard
// or the link. Pure.
#pragma once

#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/why/two_samples.h"

namespace disttrain::cli {

enum class Brake {
  kNoJob,
  kState,       // the job doesn't train; its state and reason say why
  kUnknown,     // no worker was in both samples
  kStall,       // no step ended
  kInput,       // batches
  kCompute,     // the device
  kEvaluation,  // evaluations in mid-run
  kShard,
  kLink,
};
const char* to_string(Brake brake);

struct Verdict {
  Brake brake = Brake::kNoJob;
  std::string task;  // the task to look at; "": none in particular
  std::string sentence;
  TwoSamples samples;  // on which the verdict rests
};

// A straggler is a worker whose step takes at least kClearly times the others' median, and is longer by at least
// kWorthIt of a step. Where the others wait for it, the work in the step counts instead of the whole step. Example for
// sync, where all steps take 100 ms:
// 1. worker/0 and worker/1 compute for 60 ms and wait for 40 ms. worker/2 computes for 90 ms: 1.5 times as long, and 30
//    ms more. It is the straggler.
// 2. If worker/2 computes for 65 ms, all are alike: that is only 1.08 times as long.
inline constexpr double kClearly = 1.3;
inline constexpr double kWorthIt = 0.1;
// A shard whose thread works for kBusy of the time is at its limit. A less busy one is the cause too, if its work for a
// worker takes at least kExplains of the time that the worker waits.
inline constexpr double kBusy = 0.7;
inline constexpr double kExplains = 0.5;
// From this share of compute in the step on, nothing else is worth improving.
inline constexpr double kMostly = 0.7;

// `after` is the newer one. Where the job doesn't run, only `after` is used.
Verdict judge(const Json& before, const Json& after);
// Whether every worker has made enough steps between the two for a judgement.
bool is_enough(const Json& before, const Json& after);

// 0.814 -> "81 %".
std::string percent(double share);

}  // namespace disttrain::cli
