// Runs one computation of an engine at a time, and waits for its end.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <optional>

#include "workerd/compute/engine.h"

namespace disttrain::workerd {

// `loop` is the one that the engine uses. Nothing else runs it.
class SingleComputation final : private EngineSink {
 public:
  SingleComputation(Engine& engine, asio::io_context& loop) : engine_(engine), loop_(loop) {}

  // Starts the computation and runs the loop until it is over. The result is valid until the next call.
  Result<EngineOutput> run(Program program, const Batch& batch) {
    output_.reset();
    loop_.restart();
    // The engine may compute on a thread of its own. Without this guard run_one() wouldn't wait for it.
    const auto waits = asio::make_work_guard(loop_);
    engine_.start({program, batch, {}}, *this);
    while (!output_.has_value()) loop_.run_one();
    return *output_;
  }

 private:
  void ready(std::uint64_t, std::uint64_t) override {}
  void finished(const Result<EngineOutput>& output) override { output_ = output; }

  Engine& engine_;
  asio::io_context& loop_;
  std::optional<Result<EngineOutput>> output_;
};

}  // namespace disttrain::workerd
