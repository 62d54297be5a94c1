// Dropout masks as a pure function of the step's seed: they depend neither on threads nor on earlier steps.
#pragma once

#include <span>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// Writes 0 with probability `rate`, else 1 / (1 - rate) (Srivastava et al. 2014, with the scale in training).
// 0 <= rate < 1.
void dropout_mask(const StepSeed& seed, double rate, std::span<float> mask);

}  // namespace disttrain::workerd
