// Makes engines. Only this file and the engines' own tests name a particular engine, so a new engine is added here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/model.h"
#include "common/result.h"
#include "workerd/compute/compute_engine.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// Makes the engine for `model` on a worker's `device`. On "cpu" the engines of all builtin models use libtorch.
// `threads` is the number of compute threads, at least 1. Errors: kConfig if the model can't be built as configured, or
// if this version has no engine for the device. compute_engine.h explains `post`.
Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device, std::uint32_t threads,
                                            Post post);

}  // namespace disttrain::workerd
