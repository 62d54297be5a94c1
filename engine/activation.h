// Activations over whole arrays.
#pragma once

#include <span>

#include "common/config/job_config.h"

namespace disttrain::workerd {

// True for gelu: its derivative is computed from the activation's input. The other activations' derivatives are
// computed from the activation's output.
bool keeps_input(Activation activation);

// `out` may be `in`.
void activate(Activation activation, std::span<const float> in, std::span<float> out);

// Multiplies each element of `gradient` by the activation's derivative at that element. `kept` is the activation's
// input if keeps_input(activation), otherwise its output.
void activation_gradient(Activation activation, std::span<const float> kept, std::span<float> gradient);

}  // namespace disttrain::workerd
