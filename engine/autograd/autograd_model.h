// The builtin models whose gradients libtorch's autograd computes on the CPU. All builtin models can be computed this
// way. mlp.h and cnn.h are faster for the settings that they support.
//
// The parameters of the flat array are the leaves of autograd's graph, and each gradient is copied once: from where
// autograd computed it into the flat array. For the same parameters, batch, seed and number of threads, all models give
// the same bits.
#pragma once

#include <memory>

#include "common/config/job_config.h"
#include "common/model.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// `spec` must be builtin_model(model). The computation may throw c10::Error and std::bad_alloc; torch_model.cc catches
// them.
std::unique_ptr<Computation> make_autograd_model(const ModelSection& model, const ModelSpec& spec);

}  // namespace disttrain::workerd
