// What both kinds of programs need of libtorch: its version and options, tensors over memory of disttrain, and errors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/dtype.h"
#include "common/program/package.h"
#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// The version that this program links: "2.11.0".
std::string libtorch_version();

// Sets the number of compute threads of the calling thread, and the seed of all random numbers.
void prepare_libtorch(std::uint32_t threads, const StepSeed& seed);

// A view of a variable's words, which must outlive it.
at::Tensor view_of(float* words, const VariableSpec& variable);
// The same for the column of a batch. The program doesn't write to it.
at::Tensor view_of(const ColumnValues& values, const ColumnSpec& column, std::uint64_t examples);

// Reads a frozen variable of the package into a tensor with memory of its own.
Result<at::Tensor> read_frozen(program::Package& package, std::size_t variable);

// Copies a variable's gradient, or a state variable's new value, to its place in the flat array. A new value that isn't
// finite makes the ps skip the step, as a gradient does. But one record has no variance: then `old` stays the state's
// value. `examples` is the number of records of the batch.
void write_result(const at::Tensor& result, const VariableSpec& variable, const float* old, std::uint64_t examples,
                  float* out);

// The line of a libtorch error's text that says what went wrong: the first one that isn't empty, or for an error of
// TorchScript the one after its trace. The other lines are stack traces.
std::string cause_of(const std::string& text);

// The advice if libtorch can't load a file, although this is the version that exported it.
inline constexpr const char* kDamaged = "the file is damaged: export the model again";

// Runs `body` and turns the exceptions of libtorch into errors. `doing` is "step.pt2: computing a step", and `advice`
// ends the error. The program and its description come from the user, so the error isn't kSoftware.
template <typename Return, typename Body>
Return guarded(const std::string& doing, const Body& body,
               const char* advice = "compare the records with what the model takes, or export the model again") {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kFailed, doing + ": out of memory; use a smaller batch or model");
  } catch (const std::exception& error) {
    return fail(ErrorCode::kData, doing + ": libtorch said: " + cause_of(error.what()) + "; " + advice);
  }
}

}  // namespace disttrain::workerd
