// A model that was exported from JAX: StableHLO programs, with what disttrain must know about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"
#include "workerd/compute/engine.h"

namespace disttrain::workerd::pjrt {

// A variable that training doesn't change. It is an input of the programs, but no part of ModelSpec.
struct FrozenVariable {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> values;
};

// A program for batches of one size.
//
// Its inputs are, in order: the variables of ModelSpec, the frozen variables, the columns, and, in a step,
// the seed of its random numbers, uint32[2]. Only the shapes of columns have the batch's dimension.
//
// The outputs of a step are: the loss, a single value, which is the mean over the examples; the accumulators of all
// metrics in one array, unless the model has no metrics; and for each variable of ModelSpec, in order, its gradient or
// its new value if it is state. An evaluation has the first two of these. A prediction has one output, whose first
// dimension is the batch's. Gradients and state are of their variable's type, and all other outputs are float32.
struct StableHloProgram {
  Program program = Program::kStep;
  std::uint64_t batch = 0;  // the number of examples, at least 1

  bool operator==(const StableHloProgram&) const = default;
};

// Where the large parts of a model are read from, when they are needed.
class StableHloSource {
 public:
  virtual ~StableHloSource() = default;

  // MLIR's text, its bytecode, or a portable artifact.
  virtual Result<std::string> code(const StableHloProgram& program) = 0;

  // As Engine::initial_values().
  virtual Result<std::vector<float>> initial_values(const Layout& layout) = 0;
};

struct StableHloModel {
  ModelSpec spec;  // no column is ragged or has DType::kBytes
  std::vector<FrozenVariable> frozen;
  std::vector<StableHloProgram> programs;  // the step, and those that spec.programs says
  std::unique_ptr<StableHloSource> source;
};

}  // namespace disttrain::workerd::pjrt
