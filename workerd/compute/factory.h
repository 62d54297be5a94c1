// Makes engines. Nobody else names one, but the tests of that one: a new engine is added here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/model.h"
#include "common/result.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// The engine for [model] on a worker's `device`. Every builtin model on "cpu" is libtorch's. threads: compute threads,
// at least 1. kConfig: the model can't be built as configured, or this version has no engine for the device.
Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device,
                                            std::uint32_t threads);

}  // namespace disttrain::workerd
