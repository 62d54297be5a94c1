// Activations over whole arrays.
#pragma once

#include <span>

#include "common/config/job_config.h"

namespace disttrain::workerd {

// gelu's derivative needs the activation's input; the others' derivatives are functions of its output.
bool keeps_input(Activation activation);

// `out` may be `in`.
void activate(Activation activation, std::span<const float> in, std::span<float> out);

// gradient *= the activation's derivative. kept: the activation's input if keeps_input(), else its output.
void activation_gradient(Activation activation, std::span<const float> kept, std::span<float> gradient);

}  // namespace disttrain::workerd
