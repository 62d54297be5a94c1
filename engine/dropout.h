// Makes dropout masks. A mask is a pure function of the step's seed: it depends neither on threads nor on earlier
// steps.
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace disttrain::workerd {

// Sets each element of `mask` to 0 with probability `rate`, otherwise to 1 / (1 - rate), with 0 <= rate < 1. This is
// dropout as in Srivastava et al. 2014, except that values are scaled in training instead of in evaluation.
//
// Element i depends on the step's random number first + i. If a step needs several masks, each of them takes other
// numbers.
void dropout_mask(const StepSeed& seed, double rate, std::span<float> mask, std::uint64_t first = 0);

}  // namespace disttrain::workerd
