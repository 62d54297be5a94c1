// Runs the programs of a .pt package, which TorchScript has saved, and computes the gradients by autograd.
#pragma once

#include <cstdint>
#include <memory>

#include "common/program/package.h"
#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// As make_program(), for a package of Kind::kTorchScript.
Result<std::unique_ptr<Computation>> make_torchscript(std::shared_ptr<program::Package> package, std::uint32_t threads);

}  // namespace disttrain::workerd
