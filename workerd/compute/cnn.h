// The LeNet-like network of common/builtin.h. Each operation's backward is called by hand, the last layer's first, so
// that a gradient is final, and announced, as soon as it exists.
#pragma once

#include <memory>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `spec` is builtin_model(model). May throw c10::Error and std::bad_alloc: torch_engine.cc is the door.
std::unique_ptr<Engine> make_cnn(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
