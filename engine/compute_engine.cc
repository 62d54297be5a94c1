// A step of a small network computes for 200 us, and waking a thread on another core takes 30 to 50 us. So a short
// computation runs on the caller's thread. It lets the loop run whenever a range of gradients is final. A long
// computation runs on a thread of its own, so that credits, answers and the chief's orders never wait for it. The
// engine chooses anew for each computation, by the time that the previous one took.
#include "engine/compute_engine.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/os/crash_stack.h"
#include "engine/sink_call.h"

namespace disttrain::workerd {
namespace {

// If the previous computation of the same program took less than this, the next one runs on the caller's thread. A
// computation that once took longer because the machine was busy has thread switches only once.
constexpr std::chrono::milliseconds kShort(3);

// The first line of the text of an exception. Libtorch adds a stack trace in further lines.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

const char* doing(Program program) {
  switch (program) {
    case Program::kStep:
      return "computing a step";
    case Program::kEvaluate:
      return "evaluating";
    case Program::kPredict:
      break;
  }
  return "predicting";
}

class ComputeEngine final : public Engine {
 public:
  ComputeEngine(std::unique_ptr<Computation> computation, Post post, FirstComputation first)
      : computation_(std::move(computation)), post_(std::move(post)), alive_(std::make_shared<bool>(true)) {
    if (first == FirstComputation::kLong) took_.fill(kShort);
    deliver_ = [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) deliver();
    };
  }

  ~ComputeEngine() override {
    abort();
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const ModelSpec& describe() const override { return computation_->describe(); }
  bool begins_early() const override { return computation_->begins_early(); }
  Status takes(Program program, std::uint64_t examples) const override {
    return computation_->takes(program, examples);
  }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(sink_ == nullptr && !is_calling_sink_);
    layout_ = layout;
    parameters_ = parameters;
    gradients_ = gradients;
    return computation_->open(layout, parameters, gradients);
  }

  Result<std::vector<float>> initial_values() override {
    DISTTRAIN_CHECK(sink_ == nullptr && !is_calling_sink_);
    return computation_->initial_values();
  }

  void start(const EngineInput& input, EngineSink& sink) override {
    DISTTRAIN_CHECK(sink_ == nullptr && !is_calling_sink_);
    if (input.batch.examples == 0) return finish_empty(input.program, sink);
    // Parameters arrive by the loop, so a computation that waits for them doesn't run there.
    const bool is_long = took_[static_cast<std::size_t>(input.program)] >= kShort;
    if (is_long || input.gate != nullptr) return start_on_thread(input, sink);
    const RangeReady ready = [this, &sink](std::uint64_t begin, std::uint64_t end) { call_ready(sink, begin, end); };
    call_finished(sink, run(input, ready));
  }

  // A long computation runs on a thread of its own, and gains little.
  void prepare(const Batch& batch) override {
    if (batch.examples == 0 || took_[static_cast<std::size_t>(Program::kStep)] >= kShort) return;
    try {
      computation_->prepare(batch);
      is_prepared_ = true;
    } catch (const std::exception&) {  // out of memory; step() will tell
      computation_->forget_batch();
    }
  }

  void abort() override {
    DISTTRAIN_CHECK(!is_calling_sink_);
    if (std::exchange(sink_, nullptr) == nullptr) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !work_; });
    result_.reset();
  }

 private:
  void finish_empty(Program program, EngineSink& sink) {
    if (program == Program::kStep) {
      std::fill(gradients_.begin(), gradients_.end(), 0.0F);
      for (std::size_t v = 0; v < layout_.model.variables.size(); ++v) {
        const VariableSpec& variable = layout_.model.variables[v];
        const auto begin = static_cast<std::ptrdiff_t>(layout_.variable_begins[v]);
        if (variable.kind == VariableKind::kState)
          std::copy_n(parameters_.begin() + begin, word_count(variable), gradients_.begin() + begin);
      }
      call_ready(sink, 0, gradients_.size());
    }
    call_finished(sink, EngineOutput{});
  }

  void call_ready(EngineSink& sink, std::uint64_t begin, std::uint64_t end) {
    const SinkCall call(is_calling_sink_);
    sink.ready(begin, end);
  }
  void call_finished(EngineSink& sink, const Result<EngineOutput>& output) {
    const SinkCall call(is_calling_sink_);
    sink.finished(output);
  }

  Result<EngineOutput> run(const EngineInput& input, const RangeReady& ready) {
    const auto begin = std::chrono::steady_clock::now();
    const Result<EngineOutput> result = compute(input, ready);
    took_[static_cast<std::size_t>(input.program)] = std::chrono::steady_clock::now() - begin;
    return result;
  }

  Result<EngineOutput> compute(const EngineInput& input, const RangeReady& ready) {
    try {
      if (!std::exchange(is_prepared_, false) || !input.is_prepared) computation_->forget_batch();
      switch (input.program) {
        case Program::kStep:
          if (computation_->begins_early()) computation_->set_gate(input.gate);
          return computation_->step(input.batch, input.seed, ready);
        case Program::kEvaluate:
          return computation_->evaluate(input.batch);
        case Program::kPredict:
          break;
      }
      return computation_->predict(input.batch);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kFailed,
                  std::string(doing(input.program)) + ": out of memory; use a smaller batch or model");
    } catch (const std::exception& error) {
      return fail(ErrorCode::kSoftware, std::string(doing(input.program)) + ": " + first_line(error.what()));
    }
  }

  // ---- on the thread of its own ----

  void start_on_thread(const EngineInput& input, EngineSink& sink) {
    sink_ = &sink;
    announced_ = 0;
    {
      const std::lock_guard lock(mutex_);
      work_ = input;
      ready_end_ = 0;
      is_posted_ = false;
    }
    if (thread_.joinable()) return changed_.notify_all();
    try {
      thread_ = std::thread([this] {
        use_crash_stack();
        pthread_setname_np(pthread_self(), "compute");
        serve();
      });
    } catch (const std::system_error&) {
      {
        const std::lock_guard lock(mutex_);
        work_.reset();
        result_ = fail(ErrorCode::kFailed, std::string(doing(input.program)) +
                                               ": can't start a thread: raise `ulimit -u` and `ulimit -v`, or TasksMax "
                                               "of the unit");
      }
      post_(deliver_);
    }
  }

  void serve() {
    const RangeReady ready = [this](std::uint64_t, std::uint64_t end) {
      {
        const std::lock_guard lock(mutex_);
        ready_end_ = end;
        if (std::exchange(is_posted_, true)) return;
      }
      post_(deliver_);
    };
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_ending_ || (work_ && !result_); });
      if (is_ending_) return;
      const EngineInput input = *work_;
      lock.unlock();
      Result<EngineOutput> result = run(input, ready);
      lock.lock();
      result_ = std::move(result);
      work_.reset();
      const bool is_posted = std::exchange(is_posted_, true);
      changed_.notify_all();
      if (is_posted) continue;
      lock.unlock();
      post_(deliver_);
      lock.lock();
    }
  }

  // On the loop: passes on what the thread has done so far. If the sink runs the loop, this function runs within
  // itself. The outer call then has no result, because the thread was still computing.
  void deliver() {
    if (sink_ == nullptr) return;  // aborted
    std::uint64_t end = 0;
    std::optional<Result<EngineOutput>> result;
    {
      const std::lock_guard lock(mutex_);
      is_posted_ = false;
      end = ready_end_;
      result.swap(result_);
    }
    EngineSink& sink = *sink_;
    if (end > announced_) call_ready(sink, std::exchange(announced_, end), end);
    if (!result) return;
    sink_ = nullptr;
    call_finished(sink, *result);
  }

  const std::unique_ptr<Computation> computation_;
  const Post post_;
  const std::shared_ptr<bool> alive_;  // deliver_ may run after the engine's end
  std::function<void()> deliver_;

  // Owned by the loop.
  Layout layout_;
  std::span<float> parameters_;
  std::span<float> gradients_;
  EngineSink* sink_ = nullptr;   // of the computation on the thread
  std::uint64_t announced_ = 0;  // the elements that the sink knows to be final
  bool is_calling_sink_ = false;

  // Owned by the thread that computes.
  std::array<std::chrono::steady_clock::duration, 3> took_ = {};  // by Program: how long its newest computation took
  bool is_prepared_ = false;                                      // computation_ has prepared a batch

  std::mutex mutex_;  // guards the members up to is_ending_
  std::condition_variable changed_;
  std::optional<EngineInput> work_;  // until it is done
  std::optional<Result<EngineOutput>> result_;
  std::uint64_t ready_end_ = 0;
  bool is_posted_ = false;  // deliver_ is posted and hasn't run yet
  bool is_ending_ = false;

  std::thread thread_;  // begins with the first long computation
};

}  // namespace

std::unique_ptr<Engine> make_compute_engine(std::unique_ptr<Computation> computation, Post post,
                                            FirstComputation first) {
  return std::make_unique<ComputeEngine>(std::move(computation), std::move(post), first);
}

}  // namespace disttrain::workerd
