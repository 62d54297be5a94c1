// Wraps the engines that use libtorch: catches libtorch's exceptions and returns them as errors. This file also sets
// libtorch's options.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <malloc.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <new>

#include "common/builtin.h"
#include "common/check.h"
#include "workerd/compute/cnn.h"
#include "workerd/compute/engine.h"
#include "workerd/compute/mlp.h"

namespace disttrain::workerd {
namespace {

// The first line of the text of a libtorch error. The other lines are a stack trace.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

template <typename Return, typename Body>
Return guarded(const char* doing, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kFailed, std::string(doing) + ": out of memory; use a smaller batch or model");
  } catch (const std::exception& error) {
    return fail(ErrorCode::kSoftware, std::string(doing) + ": libtorch said: " + first_line(error.what()));
  }
}

// A convolution allocates megabytes and soon frees them. By default glibc returns such memory to the kernel, and the
// next step gets new pages, with a page fault for each: about 1,100 per step of the cnn. With these settings glibc
// keeps the memory and there are no page faults. The cost is that the process may keep up to 256 MiB of freed memory.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);  // the largest value that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
}

void use_threads(std::uint32_t threads) {
  // The engines don't use libtorch's inter-operation threads. A process may set their number only once.
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
  at::set_num_threads(static_cast<int>(threads));
}

class TorchEngine final : public Engine {
 public:
  TorchEngine(std::unique_ptr<Engine> inner, std::uint32_t threads) : inner_(std::move(inner)), threads_(threads) {}

  const ModelSpec& describe() const override { return inner_->describe(); }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == describe());
    DISTTRAIN_CHECK_EQ(parameters.size(), element_count(describe()));
    DISTTRAIN_CHECK_EQ(gradients.size(), element_count(describe()));
    return guarded<Status>("opening the model", [&] {
      // Sets the number of compute threads again, because OpenMP keeps one such number for each calling thread, and
      // make_torch_engine() may have run on another thread.
      use_threads(threads_);
      gradients_ = gradients;
      return inner_->open(layout, parameters, gradients);
    });
  }

  Result<StepResult> compute(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    if (batch.examples == 0) {
      std::fill(gradients_.begin(), gradients_.end(), 0.0F);
      if (ready) ready(0, gradients_.size());
      return StepResult{std::numeric_limits<float>::quiet_NaN()};
    }
    return guarded<Result<StepResult>>("computing a step", [&] {
      const c10::InferenceMode no_graph;
      return inner_->compute(batch, seed, ready);
    });
  }

  Result<EvaluationResult> evaluate(const Batch& batch) override {
    if (batch.examples == 0) return EvaluationResult{};
    return guarded<Result<EvaluationResult>>("evaluating", [&] {
      const c10::InferenceMode no_graph;
      return inner_->evaluate(batch);
    });
  }

 private:
  const std::unique_ptr<Engine> inner_;
  const std::uint32_t threads_;
  std::span<float> gradients_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_torch_engine(const ModelSection& model, std::uint32_t threads) {
  Result<ModelSpec> spec = builtin_model(model);
  if (!spec) return tl::unexpected(spec.error());
  return guarded<Result<std::unique_ptr<Engine>>>("building the model", [&]() -> Result<std::unique_ptr<Engine>> {
    keep_freed_memory();
    use_threads(threads);
    std::unique_ptr<Engine> inner = model.builtin == "mlp" ? make_mlp(model, *spec) : make_cnn(model, *spec);
    return std::make_unique<TorchEngine>(std::move(inner), threads);
  });
}

}  // namespace disttrain::workerd
