// Makes dropout masks. A mask is a pure function of the step's seed: it depends neither on threads nor on earlier
// steps.
#pragma once

#include <span>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// Sets each element of `mask` to 0 with probability `rate`, otherwise to 1 / (1 - rate), with 0 <= rate < 1. This is
// dropout as in Srivastava et al. 2014, except that values are scaled in training instead of in evaluation.
void dropout_mask(const StepSeed& seed, double rate, std::span<float> mask);

}  // namespace disttrain::workerd
