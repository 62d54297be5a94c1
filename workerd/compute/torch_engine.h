// An engine that computes the gradients of the builtin models with libtorch on the CPU.
#pragma once

#include <cstdint>
#include <memory>

#include "common/model.h"
#include "common/result.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `threads` is the number of compute threads, at least 1. Errors: kConfig if the model can't be built as configured.
Result<std::unique_ptr<Engine>> make_torch_engine(const ModelSection& model, std::uint32_t threads);

}  // namespace disttrain::workerd
