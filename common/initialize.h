// Initial values of variables. Each value depends only on the job's seed, the variable's name and the element's index.
// So the model is the same for any number of shards, and a job can return to step 0 without a file.
#pragma once

#include <cstdint>
#include <span>

#include "common/model.h"

namespace disttrain {

// Fills `out` with the elements of the variable from first_element on; these elements must exist. Initializer
// (common/config/job_config.h) describes the distributions. A value is computed in double and rounded to float at the
// end. A normal value costs about 30 ns and a uniform value 6 ns.
void initialize(const VariableSpec& variable, std::uint64_t job_seed, std::uint64_t first_element,
                std::span<float> out);

}  // namespace disttrain
