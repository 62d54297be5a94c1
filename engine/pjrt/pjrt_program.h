// A model that was exported from JAX (python/disttrain/jax_export.py), computed by a PJRT plugin.
//
// PJRT compiles programs for fixed shapes only. So the model has each program for several batch sizes. A batch of
// another size is computed in parts, the largest first: with programs for 64, 32, 16, 8, 4, 2 and 1 examples, 37
// examples are parts of 32, 4 and 1. The batch's gradient is the mean of the parts' gradients, weighted by their
// examples; losses and metrics are added; a part begins with the state variables that the part before it has computed.
// This equals the computation over the whole batch, except for rounding, if the loss is a mean of losses of single
// examples. Where the examples of a batch influence each other, as in batch normalization, the export must name each
// size that occurs. A batch that the sizes can't compose is an error. A state variable whose new value isn't finite
// keeps its old value: batch normalization of one example may have no variance.
//
// A program is compiled when it is first used. On the CPU, XLA reads parameters and columns in place where they are
// aligned well. Gradients take one copy, from the device to the flat array; they become ready variable by variable, and
// after each stage of a step that has several. The number of compute threads is the plugin's choice. XLA uses one for
// each processor.
#pragma once

#include <memory>
#include <string>

#include "common/result.h"
#include "engine/computation.h"
#include "engine/pjrt/stablehlo_model.h"

namespace disttrain::workerd::pjrt {

// Opens the plugin (see Client::open() for the errors) and makes the computation of `model`. A step's seed is a
// function of StepSeed. Errors of a computation: kConfig if the plugin refuses the program, if the program's outputs
// don't fit the model, or if the batch sizes don't fit; kData if an integer is beyond its column's limit; kFailed if
// the device fails or its memory runs out.
Result<std::unique_ptr<Computation>> make_pjrt_program(const std::string& plugin_path, StableHloModel model);

}  // namespace disttrain::workerd::pjrt
