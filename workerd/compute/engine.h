// The interface of an engine: it computes steps, evaluations and predictions. An engine sends and receives no messages.
//
// All calls come from one thread, the worker's step thread, and the engine calls the sink on the same thread. A
// computation starts and finishes apart, so that the thread's event loop runs meanwhile. An engine has two ways to do
// this. It computes elsewhere, on a thread or in a process of its own, and posts its calls of the sink to the loop. Or
// it computes inside start() and calls the sink from there; each call of StepSink::ready() lets the loop run.
//
// Parameters and gradients are flat arrays of float32 in the order of the layout. The caller gives them at open(). The
// engine reads and writes them in place and keeps no copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/batch.h"
#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain::workerd {

// The randomness of a step (dropout) is a function of these values only.
struct StepSeed {
  std::uint64_t job_seed = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
};

enum class Program : std::uint8_t {
  kStep,      // computes gradients
  kEvaluate,  // computes loss and metrics, without dropout; writes nothing
  kPredict,   // computes the model's outputs; writes nothing
};

struct EngineInput {
  Program program = Program::kStep;
  Batch batch;
  StepSeed seed;  // kStep only
};

// The results of a computation. The spans are valid until the next start().
struct EngineOutput {
  double loss_sum = 0.0;       // over the examples; may be NaN or infinite. kPredict: 0
  std::uint64_t examples = 0;  // the number that loss_sum and the metrics are over
  // The accumulators of ModelSpec::metrics over the examples. kEvaluate: all of them. kStep: all, or none if the engine
  // doesn't compute metrics while it trains. kPredict: none.
  std::span<const double> metrics = {};
  // kPredict: the outputs, float32, with the shape [examples, outputs / examples].
  std::span<const float> outputs = {};
};

// Gets the results of one computation.
class EngineSink {
 public:
  virtual ~EngineSink() = default;

  // kStep: the gradients of flat elements [begin, end) are final, and the engine doesn't read the parameters of these
  // elements any more in this step. So the caller may send the gradients, and overwrite the parameters. For a state
  // variable, the "gradient" is its new value. The ranges are in ascending order and without gaps. Before finished()
  // without an error they have covered all elements. The call may run the event loop.
  virtual void ready(std::uint64_t begin, std::uint64_t end) = 0;

  // The computation is over: the last call. After an error (out of memory, a label out of range, a dead trainer) the
  // gradients are undefined.
  virtual void finished(const Result<EngineOutput>& output) = 0;
};

class Engine {
 public:
  // Calls abort().
  virtual ~Engine() = default;

  // Describes the model. All engines that are made for the same job describe the same model.
  virtual const ModelSpec& describe() const = 0;

  // Must be called before start(). Call it again to switch to other arrays (double buffering) or to another layout, but
  // not during a computation. Both arrays have element_count(layout.model) elements. They must stay valid until the
  // next open() or the engine's end.
  virtual Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) = 0;

  // The values with which a new job begins, in the order of the layout that open() got. Empty if the model brings none:
  // the ps tasks then draw them as VariableSpec::initializer says. Not during a computation. A worker calls it at most
  // once per generation. Errors: kData, kNoInput (the program's file can't be read any more).
  virtual Result<std::vector<float>> initial_values() = 0;

  // Starts a computation; at most one at a time. kStep reads the parameters and writes the gradients of the mean loss
  // over the batch. For a batch of 0 examples all gradients are 0, state keeps its values, and loss_sum is 0. The
  // batch's memory and the sink must stay valid until finished() or abort().
  virtual void start(const EngineInput& input, EngineSink& sink) = 0;

  // Ends the computation under way, if there is one. When it returns, the engine doesn't use the arrays and the batch
  // any more, and won't call the sink. It may take as long as a computation.
  virtual void abort() = 0;
};

}  // namespace disttrain::workerd
