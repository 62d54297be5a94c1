// The interface of a gradient engine. All calls come from one thread, the worker's step thread; the engine may use
// threads of its own inside. An engine sends and receives no messages.
//
// Parameters and gradients are flat arrays of float32 in the order of the layout. The caller gives them at open(). The
// engine reads and writes them in place and keeps no copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain::workerd {

// The records of one step, as arrays. The caller of compute() or evaluate() keeps the spans valid until the function
// returns.
struct Batch {
  std::uint64_t examples = 0;
  std::span<const float> inputs;         // examples * ModelSpec::input_elements values, row-major
  std::span<const std::int64_t> labels;  // one for each example if ModelSpec::classes > 0, otherwise empty
  std::span<const float> targets;        // examples * outputs values if classes == 0, otherwise empty
};

struct StepResult {
  float loss = 0.0F;  // the mean over the examples; may be NaN or infinite
};

struct EvaluationResult {
  double loss_sum = 0.0;      // over the examples
  std::uint64_t correct = 0;  // with classes > 0
  std::uint64_t examples = 0;
};

// The randomness of a step (dropout) is a function of these values only.
struct StepSeed {
  std::uint64_t job_seed = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
};

// A callback: the gradients of flat elements [begin, end) are final. compute() calls it on the calling thread, with
// ranges in ascending order and without gaps. When compute() ends without an error, the ranges have covered all
// elements.
using RangeReady = std::function<void(std::uint64_t begin, std::uint64_t end)>;

class Engine {
 public:
  virtual ~Engine() = default;

  // Describes the model. All engines that are made for the same job describe the same model.
  virtual const ModelSpec& describe() const = 0;

  // Must be called before compute() and evaluate(). Call it again to switch to other arrays (double buffering) or to
  // another layout. Both arrays have element_count(layout.model) elements. They must stay valid until the next open()
  // or the engine's end.
  virtual Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) = 0;

  // Reads the parameters and writes the gradients of the mean loss over the batch. For a batch of 0 examples all
  // gradients are 0 and the loss is NaN. `ready` may be empty. After an error (out of memory, a label out of range) the
  // gradients are undefined.
  virtual Result<StepResult> compute(const Batch& batch, const StepSeed& seed, const RangeReady& ready) = 0;

  // Reads the parameters and applies no dropout.
  virtual Result<EvaluationResult> evaluate(const Batch& batch) = 0;
};

}  // namespace disttrain::workerd
