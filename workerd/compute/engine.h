// The interface of a gradient engine. An engine belongs to one thread, the worker's step thread, which makes all calls;
// it may use threads of its own inside. It knows nothing of the network.
//
// Parameters and gradients are flat arrays of float32 in the order of the layout, given at open(): the engine reads and
// writes them in place and keeps no copy.
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

// Records in the order in which they are computed. The spans are valid until the call returns.
struct Batch {
  std::uint64_t examples = 0;
  std::span<const float> inputs;         // examples * ModelSpec::input_elements, row-major
  std::span<const std::int64_t> labels;  // examples; with ModelSpec::classes > 0
  std::span<const float> targets;        // examples * outputs; with classes == 0
};

struct StepResult {
  float loss = 0.0F;  // mean over the examples; may be NaN or infinite: the caller decides
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

// Gradients of flat elements [begin, end) are final. Called within compute(), on the calling thread, from the first
// layout bucket towards the last. The ranges have no gaps and cover all elements by the end of compute().
using RangeReady = std::function<void(std::uint64_t begin, std::uint64_t end)>;

class Engine {
 public:
  virtual ~Engine() = default;

  // The model; the same for every engine made from the same job.
  virtual const ModelSpec& describe() const = 0;

  // Call it before the others, and again for other arrays (double buffering) or another layout. Both arrays have
  // element_count(layout.model) elements and outlive the engine or the next open().
  virtual Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) = 0;

  // Reads parameters and overwrites all gradients with those of the mean loss over the batch. A batch of 0 examples
  // sets all gradients to 0 and the loss to NaN. `ready` may be empty. An error (out of memory, a label out of range)
  // leaves the gradients undefined.
  virtual Result<StepResult> compute(const Batch& batch, const StepSeed& seed, const RangeReady& ready) = 0;

  // Reads parameters; without dropout.
  virtual Result<EvaluationResult> evaluate(const Batch& batch) = 0;
};

}  // namespace disttrain::workerd
