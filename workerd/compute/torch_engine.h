// libtorch on the cpu: gradients of the builtin models.
#pragma once

#include <cstdint>
#include <memory>

#include "common/model.h"
#include "common/result.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// threads: compute threads, at least 1. Errors: kConfig when the model can't be built as configured.
Result<std::unique_ptr<Engine>> make_torch_engine(const ModelSection& model, std::uint32_t threads);

}  // namespace disttrain::workerd
