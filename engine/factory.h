// Makes engines. Only this file and the engines' own tests name a particular engine, so a new engine is added here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/model.h"
#include "common/result.h"
#include "engine/compute_engine.h"
#include "engine/engine.h"

namespace disttrain::workerd {

// Makes the engine for a job's builtin model or program on a worker's `device`. On "cpu" libtorch computes. On
// "pjrt:PLUGIN" a PJRT plugin computes programs that were exported from JAX. `threads` is the number of compute
// threads, at least 1. compute_engine.h explains `post`. Errors: kConfig if the model can't be built as configured, or
// if this version has no engine for the device; and those of make_program() and make_pjrt_program().
Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device, std::uint32_t threads,
                                            Post post);

}  // namespace disttrain::workerd
