// Wraps the models that use libtorch: catches libtorch's exceptions and returns them as errors.
#include "engine/torch_model.h"

#include <c10/core/InferenceMode.h>

#include <new>
#include <thread>

#include "common/builtin/builtin.h"
#include "common/check.h"
#include "engine/autograd/autograd_model.h"
#include "engine/cnn.h"
#include "engine/mlp.h"
#include "engine/torch_options.h"

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

class TorchModel final : public Computation {
 public:
  TorchModel(std::unique_ptr<Computation> inner, std::uint32_t threads) : inner_(std::move(inner)), threads_(threads) {}

  const ModelSpec& describe() const override { return inner_->describe(); }
  Status takes(Program program, std::uint64_t examples) const override { return inner_->takes(program, examples); }

  bool begins_early() const override { return inner_->begins_early(); }
  void set_gate(ParametersGate* gate) override { inner_->set_gate(gate); }

  void prepare(const Batch& batch) override { inner_->prepare(batch); }
  void forget_batch() override { inner_->forget_batch(); }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == describe());
    DISTTRAIN_CHECK_EQ(parameters.size(), element_count(describe()));
    DISTTRAIN_CHECK_EQ(gradients.size(), element_count(describe()));
    return guarded<Status>("opening the model", [&] { return inner_->open(layout, parameters, gradients); });
  }

  Result<std::vector<float>> initial_values() override { return inner_->initial_values(); }

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    return run("computing a step", [&] { return inner_->step(batch, seed, ready); });
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    return run("evaluating", [&] { return inner_->evaluate(batch); });
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    return run("predicting", [&] { return inner_->predict(batch); });
  }

 private:
  template <typename Body>
  Result<EngineOutput> run(const char* doing, const Body& body) {
    return guarded<Result<EngineOutput>>(doing, [&] {
      // OpenMP keeps a number of threads for each calling thread, so a new caller sets it again.
      if (std::exchange(caller_, std::this_thread::get_id()) != std::this_thread::get_id()) use_threads(threads_);
      const c10::InferenceMode no_graph;
      return body();
    });
  }

  const std::unique_ptr<Computation> inner_;
  const std::uint32_t threads_;
  std::thread::id caller_;
};

std::unique_ptr<Computation> make_inner(const ModelSection& model, const ModelSpec& spec) {
  const bool has_plain_loss = model.label_smoothing == 0.0 && model.class_weights.empty() && !model.has_soft_labels;
  const bool is_mlp = model.builtin == "linear" || model.builtin == "mlp";
  if (is_mlp && has_plain_loss && model.dropout == 0.0) return make_mlp(model, spec);
  if (model.builtin == "cnn" && has_plain_loss) return make_cnn(model, spec);
  return make_autograd_model(model, spec);
}

}  // namespace

Result<std::unique_ptr<Computation>> make_torch_model(const ModelSection& model, std::uint32_t threads) {
  Result<ModelSpec> spec = builtin_model(model);
  if (!spec) return tl::unexpected(spec.error());
  return guarded<Result<std::unique_ptr<Computation>>>(
      "building the model", [&]() -> Result<std::unique_ptr<Computation>> {
        keep_freed_memory();
        return std::make_unique<TorchModel>(make_inner(model, *spec), threads);
      });
}

}  // namespace disttrain::workerd
