// The LeNet-like network of common/builtin.h. Calls each operation's backward by hand, the last layer's first, so that
// a gradient is announced as soon as it is final.
#pragma once

#include <memory>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `spec` is builtin_model(model). May throw c10::Error and std::bad_alloc; torch_engine.cc catches them.
std::unique_ptr<Engine> make_cnn(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
