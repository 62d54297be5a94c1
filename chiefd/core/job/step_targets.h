// How many steps a job has to do. Pure functions.
#pragma once

#include <cstdint>

#include "chiefd/core/job/generation.h"
#include "chiefd/core/job/progress.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/workers.h"

namespace disttrain::chiefd {

// The step that the pacer counts to: train.steps, in sync without sharding also limited by train.epochs. 0: no limit.
std::uint64_t effective_steps(const JobSetup& setup, const GenerationPlan& generation);

// The configuration that the training tasks get: the job's, with effective_steps().
SharedJobConfig resolved_config(const JobSetup& setup, const GenerationPlan& generation);

// For the status: the step at which the job will end. 0: not known.
std::uint64_t steps_target(const JobSetup& setup, const GenerationPlan& generation, const Progress& progress,
                           const Workers& workers);

}  // namespace disttrain::chiefd
