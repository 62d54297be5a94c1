// The LeNet-like network of common/builtin/builtin.h. Its backward pass is written by hand and starts with the last
// layer. So it can announce each gradient as soon as the gradient is final.
#pragma once

#include <memory>

#include "engine/computation.h"

namespace disttrain::workerd {

// `spec` must be builtin_model(model). The engine may throw c10::Error and std::bad_alloc; torch_engine.cc catches
// them.
std::unique_ptr<Computation> make_cnn(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
