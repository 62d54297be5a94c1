// Detects a training job that makes no progress: the answer to a fence is late, or no step is made. If no step is made,
// blames the worker that has been longest in a phase of its own, such as computing. If all workers wait for an answer
// of a ps, blames the pacer.
#pragma once

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"

namespace disttrain::chiefd::rules {

// REQUIRES: the job trains, and no ps is silent.
Verdict late_fence(const JobFacts& job, Instant now);
Verdict stalled(const JobFacts& job, const Tasks& tasks, Instant now);

}  // namespace disttrain::chiefd::rules
