// Runs an engine in a test: starts a computation and waits until it has finished.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/compute_engine.h"
#include "engine/engine.h"
#include "engine/records.h"

namespace disttrain::workerd::test {

// The event loop of an engine's caller.
class Loop {
 public:
  Post post() {
    return [this](std::function<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      changed_.notify_all();
    };
  }

  // Waits for the next task and runs it.
  void run_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
};

// The columns of a batch for a builtin model. The records must outlive it.
class Columns {
 public:
  explicit Columns(const Records& records)
      : examples_(records.examples),
        values_{ColumnValues{std::as_bytes(records.inputs), {}},
                ColumnValues{records.targets.empty() ? std::as_bytes(records.labels) : std::as_bytes(records.targets),
                             {}}} {}
  Batch batch() const { return {examples_, values_}; }

 private:
  const std::uint64_t examples_;
  const std::array<ColumnValues, 2> values_;
};

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// The outcome of one computation. The spans of `output` are valid until the engine's next one.
struct Ran {
  Result<EngineOutput> output = EngineOutput();
  Ranges ranges;  // of the calls of ready()

  float loss() const { return static_cast<float>(output->loss_sum / static_cast<double>(output->examples)); }
};

inline Ran run(Engine& engine, Loop& loop, Program program, const Records& records, const StepSeed& seed = {}) {
  struct Sink final : EngineSink {
    void ready(std::uint64_t begin, std::uint64_t end) override { ran.ranges.emplace_back(begin, end); }
    void finished(const Result<EngineOutput>& output) override {
      ran.output = output;
      is_finished = true;
    }
    Ran ran;
    bool is_finished = false;
  } sink;
  const Columns columns(records);
  engine.start(EngineInput{program, columns.batch(), seed}, sink);
  while (!sink.is_finished) loop.run_one();
  return sink.ran;
}

}  // namespace disttrain::workerd::test
