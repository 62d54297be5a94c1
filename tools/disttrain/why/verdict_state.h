// What is said of a job that makes no step: because it isn't running, or because nobody gets on. Pure.
#pragma once

#include "tools/disttrain/why/verdict.h"

namespace disttrain::cli {

// Of a job that isn't running, or of none at all (docs/json.md).
Verdict judge_state(const Json& status);
// Of one that is, though none of its workers made a step.
Verdict judge_stall(const Json& status, TwoSamples samples);

}  // namespace disttrain::cli
