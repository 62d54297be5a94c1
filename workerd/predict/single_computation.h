// Runs one computation of an engine at a time, and waits until it ends or is cancelled. Only a trainer's computation is
// cut short; Engine::abort() waits for the end of others.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "engine/engine.h"

namespace disttrain::workerd {

// `loop` is the one that the engine uses. Nothing else runs it.
class SingleComputation final : private EngineSink {
 public:
  // `is_cancelled` is called during a computation, on the thread of the loop. Nothing cancels one without it.
  SingleComputation(Engine& engine, asio::io_context& loop, std::function<bool()> is_cancelled = {})
      : engine_(engine), loop_(loop), is_cancelled_(std::move(is_cancelled)) {}

  // Starts the computation and runs the loop until it is over. The result is valid until the next call. Fails with
  // kTemporary if is_cancelled() returns true, after Engine::abort().
  Result<EngineOutput> run(Program program, const Batch& batch) {
    output_.reset();
    loop_.restart();
    // The engine may compute on a thread of its own. Without this guard run_one() wouldn't wait for it.
    const auto waits = asio::make_work_guard(loop_);
    engine_.start({program, batch, {}}, *this);
    while (!output_.has_value()) {
      loop_.run_one_for(kAskEvery);
      if (output_.has_value() || !is_cancelled_ || !is_cancelled_()) continue;
      engine_.abort();
      return fail(ErrorCode::kTemporary, "the computation was cancelled");
    }
    return *output_;
  }

 private:
  static constexpr std::chrono::milliseconds kAskEvery{100};

  void ready(std::uint64_t, std::uint64_t) override {}
  void finished(const Result<EngineOutput>& output) override { output_ = output; }

  Engine& engine_;
  asio::io_context& loop_;
  const std::function<bool()> is_cancelled_;
  std::optional<Result<EngineOutput>> output_;
};

}  // namespace disttrain::workerd
