// How many steps a job has to do. Pure functions.
#pragma once

#include <cstdint>

#include "chiefd/core/job/generation.h"
#include "chiefd/core/job/progress.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/workers.h"

namespace disttrain::chiefd {

// What the pacer counts to: the steps of the configuration; in sync over whole data sets those that the epochs make.
// 0: no limit.
std::uint64_t effective_steps(const JobSetup& setup, const GenerationPlan& generation);

// What every task that trains goes by: the configuration with the effective number of steps.
SharedJobConfig resolved_config(const JobSetup& setup, const GenerationPlan& generation);

// For the status: where the job will end, as far as that is known. 0: not known.
std::uint64_t steps_target(const JobSetup& setup, const GenerationPlan& generation, const Progress& progress,
                           const Workers& workers);

}  // namespace disttrain::chiefd
