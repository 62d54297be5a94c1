// The interface of a model that is computed inside this process, by libtorch or by code of our own. It blocks its
// caller. compute_engine.h makes an Engine of it.
//
// A Computation has no thread of its own, and any thread may call it, one at a time. It may throw std::bad_alloc and
// the exceptions of its library; the class that calls it catches them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/layout.h"
#include "common/model.h"
#include "common/result.h"
#include "engine/engine.h"

namespace disttrain::workerd {

// A callback: see EngineSink::ready(). The computation calls it on its caller's thread.
using RangeReady = std::function<void(std::uint64_t begin, std::uint64_t end)>;

class Computation {
 public:
  virtual ~Computation() = default;

  virtual const ModelSpec& describe() const = 0;

  // As Engine::takes().
  virtual Status takes(Program program, std::uint64_t examples) const = 0;

  // As Engine::begins_early().
  virtual bool begins_early() const { return false; }

  // Sets EngineInput::gate for the next call of step(). Only if begins_early().
  virtual void set_gate(ParametersGate*) {}

  // As Engine::prepare(). The next call of step() has this batch, unless there is a call of forget_batch() before it.
  virtual void prepare(const Batch&) {}
  virtual void forget_batch() {}

  // As Engine::open().
  virtual Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) = 0;

  // As Engine::initial_values().
  virtual Result<std::vector<float>> initial_values() = 0;

  // As Engine::start() and EngineSink::finished(), for a batch of at least one example. `ready` may be empty. The spans
  // of the result are valid until the next call.
  virtual Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) = 0;
  // kConfig if the model has no such program (ModelSpec::programs).
  virtual Result<EngineOutput> evaluate(const Batch& batch) = 0;
  virtual Result<EngineOutput> predict(const Batch& batch) = 0;
};

}  // namespace disttrain::workerd
