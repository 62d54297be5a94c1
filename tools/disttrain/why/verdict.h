// Who or what holds a job's step back: from the barrier to the slowest worker, and from there to its input, its device,
// a shard or the link. A judgement over two answers of the chief (docs/json.md); pure.
#pragma once

#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/why/two_samples.h"

namespace disttrain::cli {

enum class Brake {
  kNoJob,
  kState,       // it doesn't train: its state and reason say why
  kUnknown,     // no worker was seen at both moments
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
  std::string task;  // to look at; "": none more than the others
  std::string sentence;
  TwoSamples samples;  // that it rests on
};

// A straggler is a worker whose step (where others wait for it: its own work in it) takes so many times as long as the
// others' median, and a tenth of a step longer: below that they are alike.
inline constexpr double kClearly = 1.3;
inline constexpr double kWorthIt = 0.1;
// A shard thread that is at work for so much of the time has no room left. One below it is the cause where its work for
// a worker is at least half of what that worker waits.
inline constexpr double kBusy = 0.7;
inline constexpr double kExplains = 0.5;
// Of the step in compute: there is nothing else to gain.
inline constexpr double kMostly = 0.7;

// `after` is the newer one. Where the job doesn't run, it alone is looked at.
Verdict judge(const Json& before, const Json& after);
// Whether every worker has made enough steps between the two to be judged by.
bool is_enough(const Json& before, const Json& after);

// 0.814 -> "81 %".
std::string percent(double share);

}  // namespace disttrain::cli
