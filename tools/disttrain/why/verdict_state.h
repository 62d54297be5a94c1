// The verdict on a job that makes no steps, because it isn't running, or because it is stuck.
#pragma once

#include "tools/disttrain/why/verdict.h"

namespace disttrain::cli {

// Judges a job that isn't running, or says that there is no job. `status` is the chief's answer (docs/json.md).
Verdict judge_state(const Json& status);
// Judges a job that is running, although none of its workers has made a step during the measurement.
Verdict judge_stall(const Json& status, TwoSamples samples);

}  // namespace disttrain::cli
