// Multi-layer perceptron with a hand-written backward pass: products go straight into the flat gradient array, and
// everything between them into buffers that are kept, so that a step allocates nothing and faults no page.
#pragma once

#include <memory>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `spec` is builtin_model(model). May throw c10::Error and std::bad_alloc: torch_engine.cc is the door.
std::unique_ptr<Engine> make_mlp(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
