// The builtin models that have kernels of our own, computed on the CPU. They also use libtorch.
#pragma once

#include <cstdint>
#include <memory>

#include "common/model.h"
#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// `threads` is the number of compute threads, at least 1. Errors: kConfig if the model can't be built as configured.
// The computation catches the exceptions of libtorch.
Result<std::unique_ptr<Computation>> make_torch_model(const ModelSection& model, std::uint32_t threads);

}  // namespace disttrain::workerd
