// Makes a Computation of a package that disttrain.export wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// Loads the package at `path`, a .pt2 or .pt file. Nothing is compiled. `threads` is the number of compute threads, at
// least 1. It may take seconds for a large model. The file must stay until initial_values() was called, if it is
// called. Any thread.
//
// The Computation: a step announces its ranges after each of its stages (common/program/sidecar.h). A TorchScript step,
// which autograd computes, has no stages. A state variable whose new value isn't finite keeps its old value: batch
// norm of a single record has no variance. The randomness of a step (dropout) comes from libtorch's default generator,
// which each step seeds with its StepSeed. The same step on the same processor with the same number of threads gives
// the same bits.
//
// A batch must have exactly the size that the package says, if it says one, and integers must be within their column's
// limit (kData).
//
// Errors: kNoInput if the file doesn't exist, kData if it is damaged, kConfig if it needs another version of PyTorch or
// another processor, or if it isn't a package for PyTorch.
Result<std::unique_ptr<Computation>> make_program(const std::string& path, std::uint32_t threads);

}  // namespace disttrain::workerd
