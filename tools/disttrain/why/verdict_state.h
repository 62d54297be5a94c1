// The verdict on a job that makes no steps: it isn't running, or it runs and is stuck. Pure.
#pragma once

#include "tools/disttrain/why/verdict.h"

namespace disttrain::cli {

// For a job that isn't running, or where there is no job (docs/json.md).
Verdict judge_state(const Json& status);
// For a job that is running, though none of its workers made a step.
Verdict judge_stall(const Json& status, TwoSamples samples);

}  // namespace disttrain::cli
