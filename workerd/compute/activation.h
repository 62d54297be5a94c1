// Activations over whole arrays.
#pragma once

#include <span>

#include "common/config/job_config.h"

namespace disttrain::workerd {

// gelu's derivative needs what went in; the others' derivative is a function of what came out.
bool keeps_input(Activation activation);

// out may be in.
void activate(Activation activation, std::span<const float> in, std::span<float> out);

// gradient *= the activation's derivative. kept: what went in if keeps_input(), else what came out.
void activation_gradient(Activation activation, std::span<const float> kept, std::span<float> gradient);

}  // namespace disttrain::workerd
