// A model that was exported from JAX: StableHLO programs, with what disttrain must know about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"
#include "engine/engine.h"

namespace disttrain::workerd::pjrt {

// A variable that training doesn't change. It is an input of the programs, but no part of ModelSpec.
struct FrozenVariable {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> values;
};

// A program for batches of one size, or one stage of it.
//
// The inputs of a program are, in order: the variables of ModelSpec, the frozen variables, the columns, and, in a step,
// the seed of its random numbers, uint32[2]. Only the shapes of columns have the batch's dimension.
//
// The outputs of a step are: the loss, a single value, which is the mean over the examples; the accumulators of all
// metrics in one array, unless the model has no metrics; and for each variable of ModelSpec, in order, its gradient or
// its new value if it is state. An evaluation has the first two of these. A prediction has one output, whose first
// dimension is the batch's. Gradients and state are of their variable's type, and all other outputs are float32.
struct StableHloProgram {
  Program program = Program::kStep;
  std::uint64_t batch = 0;                  // the number of examples, at least 1
  std::optional<std::uint32_t> stage = {};  // index in StableHloModel::stages; nothing: the whole program

  bool operator==(const StableHloProgram&) const = default;
};

// A step may be cut into stages: programs that run one after the other, so that the first gradients are final while
// later stages run. The values of a step have numbers: first its inputs, then the loss, the accumulators (the number is
// there without metrics, too), the result of each variable, and then the arrays that a stage passes to later ones. A
// stage takes inputs and what stages before it have given. All stages together give each result once.
struct StableHloStage {
  std::vector<std::uint32_t> takes;  // in the order of the program's inputs
  std::vector<std::uint32_t> gives;  // in the order of its outputs
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
  std::vector<StableHloStage> stages;      // of the step; empty: a step is one program
  std::unique_ptr<StableHloSource> source;
};

}  // namespace disttrain::workerd::pjrt
