// A multi-layer perceptron with a hand-written backward pass. It writes the gradients of weights and biases directly
// into the flat gradient array. All other results go into buffers that are kept from step to step. So a step allocates
// no memory and causes no page fault.
#pragma once

#include <memory>

#include "engine/computation.h"

namespace disttrain::workerd {

// `spec` must be builtin_model(model). The engine may throw c10::Error and std::bad_alloc; torch_engine.cc catches
// them.
std::unique_ptr<Computation> make_mlp(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
