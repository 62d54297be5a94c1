// StepParts computes a step in several parts (train.accumulate): it cuts the step's batch, and turns the gradients of
// the parts into the gradients of the whole batch.
//
//   parts.begin(batch, parameters);
//   do {
//     engine.start(parts.next(parameters, gradients), ...);   // the engine calls add() by EngineSink::ready()
//   } while (!parts.is_last());
//
// The gradient of the batch is sum(n_i * g_i) / sum(n_i), where n_i is the number of records of part i and g_i the
// gradient of the mean loss over this part. The parts are added in their order, so the same batch gives the same bits.
// State variables, such as batch norm's statistics, go from part to part as in PyTorch: each part begins with the
// values that the part before it has computed. The step's new values are those of the last part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/batch.h"
#include "common/layout.h"
#include "common/os/arena.h"

namespace disttrain::workerd {

// The loss of a step's parts, as in EngineOutput.
struct StepSums {
  double loss_sum = 0.0;
  std::uint64_t examples = 0;
};

// All calls come from one thread.
class StepParts {
 public:
  // `part_records`: the most records of a part, at least 1. Takes memory for one array of gradients, and throws
  // std::bad_alloc.
  StepParts(const Layout& layout, std::uint64_t part_records);

  // Begins with another batch. Its memory must stay valid until the last part is computed. `parameters` is the engine's
  // array.
  void begin(const Batch& batch, std::span<const float> parameters);
  // The next part, a view of the batch. The view is valid until the next call. A batch without records has one part,
  // which has no records either. Copies the state that the part before it has computed from `gradients` to
  // `parameters`. Both are the engine's arrays.
  Batch next(std::span<float> parameters, std::span<const float> gradients);
  // True if next() has returned the batch's last part.
  bool is_last() const { return end_ == batch_.examples; }
  // The number of the part that next() has returned, from 0.
  std::uint64_t index() const { return index_; }

  // The words [begin, end) of the part that next() has returned are final. Both are the edges of elements. In the last
  // part, writes the gradients of the whole batch to `gradients`, and gives the state in `parameters` the values that
  // it had before the step. So a step that is computed again begins with the same state.
  void add(std::span<float> parameters, std::span<float> gradients, std::uint64_t begin, std::uint64_t end);

 private:
  // A variable's place in the flat array, in words.
  struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    DType dtype = DType::kFloat32;
    bool is_state = false;
  };
  template <typename T>
  void add_run(std::span<float> part, std::span<float> sum);

  // Constant after construction.
  const std::uint64_t part_records_;
  std::vector<DType> dtypes_;  // of the columns
  std::vector<Run> runs_;      // ascending

  Arena arena_{ArenaKind::kPrivate};
  Memory sum_;  // of the gradients; for a state variable its values before the step
  Batch batch_;
  std::uint64_t begin_ = 0;  // first record of the part
  std::uint64_t end_ = 0;
  std::uint64_t index_ = 0;
  std::vector<ColumnValues> columns_;                 // of the part
  std::vector<std::vector<std::uint64_t>> row_ends_;  // of the part's ragged columns
};

}  // namespace disttrain::workerd
