// The interface of an engine: it computes steps, evaluations and predictions. An engine sends and receives no messages.
//
// All calls come from one thread, the worker's step thread, and the engine calls the sink on the same thread. A
// computation starts and finishes apart, so that the thread's event loop runs meanwhile. An engine has two ways to do
// this. It computes elsewhere, on a thread or in a process of its own, and posts its calls of the sink to the loop. Or
// it computes inside start() and calls the sink from there; each call of EngineSink::ready() lets the loop run.
//
// During a call of the sink nobody calls start(), open() or abort(), or destroys the engine: a computation inside
// start() couldn't be ended. If the sink runs the event loop, an event that leads to such a call waits until start()
// has returned (StepThread::post()). The engines check this.
//
// Bits: builtin models, packages from PyTorch, and packages from JAX on XLA's CPU plugin promise the same gradients, to
// the last bit, for the same parameters, batch, seed, processor and number of threads. Other plugins and trainers
// promise only what their own code does: on a GPU many kernels add in an order that changes from run to run.
// tests/system/same_bits_test.py checks it for each engine.
//
// Parameters and gradients are flat arrays of words in the order of the layout (common/layout.h). The caller gives them
// at open(). The engine reads and writes them in place and keeps no copy.
#pragma once

#include <cstdint>
#include <optional>
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
  // The number of the step. With train.accumulate = N > 1, part i of a step has the number step * N + i.
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
};

enum class Program : std::uint8_t {
  kStep,      // computes gradients
  kEvaluate,  // computes loss and metrics, without dropout; writes nothing
  kPredict,   // computes the model's outputs; writes nothing
};

// Says which parameters are there, for an engine that begins a step before all of them are (begins_early()).
class ParametersGate {
 public:
  virtual ~ParametersGate() = default;
  // Waits until the parameter at the flat word `begin` is there. Returns up to where all parameters from `begin` on are
  // there, at most `end`. Returns `begin` if they won't come: the computation must then end, with any error. Any thread
  // may call this function, but not the loop's.
  virtual std::uint64_t wait(std::uint64_t begin, std::uint64_t end) = 0;
};

// Waits for all parameters at the flat words [begin, end). False if the computation must end. Without a gate all are
// there.
inline bool wait_for_all(ParametersGate* gate, std::uint64_t begin, std::uint64_t end) {
  while (gate != nullptr && begin < end) {
    const std::uint64_t there = gate->wait(begin, end);
    if (there == begin) return false;
    begin = there;
  }
  return true;
}

struct EngineInput {
  Program program = Program::kStep;
  Batch batch;
  StepSeed seed;  // kStep only
  // The batch that the next step will probably have, for an engine that reads records by itself. None if it isn't known
  // yet. Valid during start() only.
  std::optional<Batch> next = std::nullopt;
  // kStep: the batch is that of the newest prepare(), and its memory hasn't changed since.
  bool is_prepared = false;
  // For an engine that clears gradients ahead: the array of gradients that the next step will probably use. After
  // finished() nobody else uses it until the next start().
  std::span<float> spare_gradients = {};
  // kStep, and only if begins_early(): some parameters may not be there yet, so the engine asks the gate before it
  // reads any. It has waited for all of them before it writes the first gradient. nullptr: all are there. Valid until
  // finished() or abort().
  ParametersGate* gate = nullptr;
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

  // kStep: the gradients at the flat words [begin, end) are final, and the engine doesn't read the parameters at these
  // words any more in this step. So the caller may send the gradients, and overwrite the parameters. For a state
  // variable, the "gradient" is its new value. The ranges are in ascending order and without gaps. They begin and end
  // between two elements. Before finished() without an error they have covered everything, unless the loss isn't
  // finite. Then the caller should send no gradients, so an engine that knows the loss in time calls ready() no more.
  // The call may run the event loop, and there the engine may go on with the same computation, up to finished().
  virtual void ready(std::uint64_t begin, std::uint64_t end) = 0;

  // The computation is over: the last call. After an error (out of memory, a label out of range, a dead trainer) the
  // gradients are undefined.
  virtual void finished(const Result<EngineOutput>& output) = 0;
};

class Engine {
 public:
  // Calls abort().
  virtual ~Engine() = default;

  // Whether the engine sets the gradients of the next step to 0 while those of this step are exchanged. The caller may
  // then use two arrays of gradients by turns (EngineInput::spare_gradients).
  virtual bool clears_gradients_ahead() const { return false; }

  // Whether the engine can begin a step while parameters still arrive (EngineInput::gate).
  virtual bool begins_early() const { return false; }

  // Describes the model. All engines that are made for the same job describe the same model.
  virtual const ModelSpec& describe() const = 0;

  // Whether the model can compute `program` on a batch of `examples` records, at least 1. A program may have been
  // exported for certain sizes only. Errors: kConfig.
  virtual Status takes(Program program, std::uint64_t examples) const = 0;

  // Must be called before start(). Call it again to switch to other arrays (double buffering) or to another layout, but
  // not during a computation. Both arrays have word_count(layout.model) words. They must stay valid until the
  // next open() or the engine's end.
  virtual Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) = 0;

  // The values with which a new job begins, in the order of the layout that open() got. Empty if the model brings none:
  // the ps tasks then draw them as VariableSpec::initializer says. Not during a computation. A worker calls it at most
  // once per generation. Errors: kData, kNoInput (the program's file can't be read any more).
  virtual Result<std::vector<float>> initial_values() = 0;

  // Computes what depends on a batch alone, for a later start() with EngineInput::is_prepared. Call it while the step
  // waits for parameters, but not during a computation. It takes a small part of a step's time.
  virtual void prepare(const Batch&) {}

  // Starts a computation; at most one at a time. kStep reads the parameters and writes the gradients of the mean loss
  // over the batch. For a batch of 0 examples all gradients are 0, state keeps its values, and loss_sum is 0. The
  // batch's memory and the sink must stay valid until finished() or abort().
  virtual void start(const EngineInput& input, EngineSink& sink) = 0;

  // Ends the computation under way, if there is one. When it returns, the engine doesn't use the arrays and the batch
  // any more, and won't call the sink. It may take as long as a computation. If the computation has a gate, the gate
  // must return at once from now on.
  virtual void abort() = 0;
};

}  // namespace disttrain::workerd
