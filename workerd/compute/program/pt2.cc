#include "workerd/compute/program/pt2.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>

#include <map>

#include "common/check.h"
#include "workerd/compute/program/libtorch.h"
#include "workerd/compute/program/unpacked.h"
#include "workerd/compute/program/values.h"

extern "C" int disttrain_torch_name();

namespace disttrain::workerd {
namespace {

using Runner = torch::inductor::AOTIModelContainerRunnerCpu;

class Pt2 final : public Computation {
 public:
  Pt2(std::shared_ptr<program::Package> package, std::uint32_t threads)
      : package_(std::move(package)), sidecar_(package_->sidecar()), threads_(threads) {}

  // Loads the libraries and the frozen variables.
  Status load() {
    for (const auto& [name, program] : sidecar_.programs) {
      Result<UnpackedProgram> unpacked = UnpackedProgram::make(package_->file(), name);
      if (!unpacked) return tl::unexpected(unpacked.error());
      // The library stays loaded when its file is removed, at the end of this block.
      runners_[name] = std::make_unique<Runner>(unpacked->library(), 1, true);
    }
    if (sidecar_.variables.size() > sidecar_.model.variables.size())  // some are frozen
      if (Status verified = package_->verify_values(); !verified) return verified;
    for (std::size_t v = 0; v < sidecar_.variables.size(); ++v) {
      inputs_.emplace_back();
      if (sidecar_.variables[v].kind != program::SidecarVariable::Kind::kFrozen) continue;
      Result<at::Tensor> frozen = read_frozen(*package_, v);
      if (!frozen) return tl::unexpected(frozen.error());
      inputs_.back() = std::move(*frozen);
    }
    return {};
  }

  const ModelSpec& describe() const override { return sidecar_.model; }
  Status takes(Program, std::uint64_t examples) const override {
    return check_size(sidecar_, examples, package_->path());
  }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == describe());
    layout_ = layout;
    order_ = FlatOrder(layout);
    parameters_ = parameters;
    gradients_ = gradients;
    return guarded<Status>(package_->path() + ": opening the model", [&]() -> Status {
      std::size_t in_model = 0;
      for (std::size_t v = 0; v < inputs_.size(); ++v) {
        if (sidecar_.variables[v].kind == program::SidecarVariable::Kind::kFrozen) continue;
        inputs_[v] = view_of(parameters.data() + layout.variable_begins[in_model], describe().variables[in_model]);
        ++in_model;
      }
      return {};
    });
  }

  Result<std::vector<float>> initial_values() override { return package_->initial_values(layout_); }

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    return run("step", "computing a step", batch, seed, [&](const std::vector<at::Tensor>& results) {
      TORCH_CHECK(results.size() == 2 + sidecar_.model.variables.size(), "the program returned ", results.size(),
                  " tensors; expected ", 2 + sidecar_.model.variables.size());
      order_.write_all(
          [&](std::uint32_t variable, std::uint64_t begin) {
            write_result(results[2 + variable], sidecar_.model.variables[variable], parameters_.data() + begin,
                         gradients_.data() + begin);
          },
          ready);
      return scored(results, batch);
    });
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    return run("evaluate", "evaluating", batch, {}, [&](const std::vector<at::Tensor>& results) {
      TORCH_CHECK(results.size() == 2, "the program returned ", results.size(), " tensors; expected 2");
      return scored(results, batch);
    });
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    return run("predict", "predicting", batch, {}, [&](const std::vector<at::Tensor>& results) {
      TORCH_CHECK(results.size() == 1 && results[0].scalar_type() == at::kFloat &&
                      results[0].numel() % static_cast<std::int64_t>(batch.examples) == 0,
                  "the program didn't return one row of float32 for each record");
      outputs_ = results[0].contiguous();
      EngineOutput output;
      output.examples = batch.examples;
      output.outputs = {outputs_.const_data_ptr<float>(), static_cast<std::size_t>(outputs_.numel())};
      return output;
    });
  }

 private:
  template <typename Use>
  Result<EngineOutput> run(const std::string& program, const char* doing, const Batch& batch, const StepSeed& seed,
                           const Use& use) {
    const auto found = sidecar_.programs.find(program);
    if (found == sidecar_.programs.end())
      return fail(ErrorCode::kConfig, package_->path() + " has no program for " + doing);
    if (Status checked = check_batch(sidecar_, found->second.columns, batch, package_->path()); !checked)
      return tl::unexpected(checked.error());
    return guarded<Result<EngineOutput>>(package_->path() + ": " + doing, [&]() -> Result<EngineOutput> {
      const c10::InferenceMode no_graph;
      prepare_libtorch(threads_, seed);
      std::vector<at::Tensor> inputs = inputs_;
      for (const std::uint32_t c : found->second.columns)
        inputs.push_back(view_of(batch.columns[c], sidecar_.model.columns[c], batch.examples));
      return use(runners_.at(program)->boxed_run(std::move(inputs)));
    });
  }

  // The loss and the metrics, which the programs step and evaluate return first.
  EngineOutput scored(const std::vector<at::Tensor>& results, const Batch& batch) {
    const at::Tensor metrics = results[1].contiguous();
    TORCH_CHECK(metrics.scalar_type() == at::kDouble &&
                    static_cast<std::size_t>(metrics.numel()) == accumulator_size(sidecar_.model.metrics),
                "the program returned ", metrics.numel(), " numbers for the metrics; expected ",
                accumulator_size(sidecar_.model.metrics));
    const auto* numbers = metrics.const_data_ptr<double>();
    metrics_.assign(numbers, numbers + metrics.numel());
    EngineOutput output;
    output.loss_sum = results[0].item<double>();
    output.examples = batch.examples;
    output.metrics = metrics_;
    return output;
  }

  const std::shared_ptr<program::Package> package_;
  const program::Sidecar& sidecar_;
  const std::uint32_t threads_;
  std::map<std::string, std::unique_ptr<Runner>> runners_;  // by program
  std::vector<at::Tensor> inputs_;                          // one for each variable of the sidecar
  Layout layout_;
  FlatOrder order_;
  std::span<float> parameters_;
  std::span<float> gradients_;
  // Results that the caller may look at until the next call.
  std::vector<double> metrics_;
  at::Tensor outputs_;
};

// Whether this processor has the instructions that the package was compiled for.
Status check_cpu(const program::Package& package) {
  const std::string& needed = package.sidecar().cpu;
  __builtin_cpu_init();
  if (needed.empty() || (needed == "x86-64-v3" && __builtin_cpu_supports("x86-64-v3")) ||
      (needed == "x86-64-v4" && __builtin_cpu_supports("x86-64-v4")))
    return {};
  const bool has_v3 = __builtin_cpu_supports("x86-64-v3");
  return fail(ErrorCode::kConfig, package.path() + " is compiled for processors of level " + needed +
                                      ", and this worker's is " +
                                      (has_v3 ? "x86-64-v3 (no AVX-512): export it with cpu=\"x86-64-v3\""
                                              : "older than x86-64-v3 (no AVX2): export it to a .pt file"));
}

}  // namespace

Result<std::unique_ptr<Computation>> make_pt2(std::shared_ptr<program::Package> package, std::uint32_t threads) {
  if (Status checked = check_cpu(*package); !checked) return tl::unexpected(checked.error());
  DISTTRAIN_CHECK_EQ(disttrain_torch_name(), 1);  // so the linker keeps the library
  const std::string doing = package->path() + ": loading the program";
  return guarded<Result<std::unique_ptr<Computation>>>(doing, [&]() -> Result<std::unique_ptr<Computation>> {
    auto pt2 = std::make_unique<Pt2>(std::move(package), threads);
    if (Status loaded = pt2->load(); !loaded) return tl::unexpected(loaded.error());
    return pt2;
  });
}

}  // namespace disttrain::workerd
