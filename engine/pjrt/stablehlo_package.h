// Reads a package that disttrain.export_jax wrote (python/disttrain/jax_export.py). Each program is a member of the
// package, which is named after the program and its batch size: "stablehlo/step-64.mlirbc". If a step has stages, each
// has a member: "stablehlo/step_0-64.mlirbc" and so on.
#pragma once

#include <string>

#include "common/result.h"
#include "engine/pjrt/stablehlo_model.h"

namespace disttrain::workerd::pjrt {

// Reads the description and the frozen variables. The model's source keeps the file open and reads the rest later.
// Errors: as program::Package::open(). kConfig if the package isn't from JAX. kData if its parts don't fit together.
Result<StableHloModel> read_stablehlo_package(const std::string& path);

}  // namespace disttrain::workerd::pjrt
