// Computes how many steps a job has to do. The functions are pure.
#pragma once

#include <cstdint>

#include "chiefd/core/job/facts/generation.h"
#include "chiefd/core/job/facts/progress.h"
#include "chiefd/core/job/facts/workers.h"
#include "chiefd/core/job/setup.h"

namespace disttrain::chiefd {

// The step at which the pacer ends training, 0 if there is no limit. This is train.steps. In sync with data.sharding =
// "none", train.epochs limits it too.
std::uint64_t effective_steps(const JobSetup& setup, const GenerationPlan& generation);

// The configuration that the training tasks get: the job's own configuration, with effective_steps() as train.steps.
SharedJobConfig resolved_config(const JobSetup& setup, const GenerationPlan& generation);

// The step at which the job will end, for the status. 0 if it isn't known.
std::uint64_t steps_target(const JobSetup& setup, const GenerationPlan& generation, const Progress& progress,
                           const Workers& workers);

}  // namespace disttrain::chiefd
