// Multi-layer perceptron with a hand-written backward pass: products go straight into the flat gradient array,
// everything else into buffers that are kept. So a step allocates nothing and causes no page fault.
#pragma once

#include <memory>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `spec` is builtin_model(model). May throw c10::Error and std::bad_alloc; torch_engine.cc catches them.
std::unique_ptr<Engine> make_mlp(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
