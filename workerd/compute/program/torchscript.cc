#include "workerd/compute/program/torchscript.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>
#include <torch/csrc/jit/serialization/import.h>

#include <map>

#include "common/check.h"
#include "workerd/compute/program/libtorch.h"
#include "workerd/compute/program/values.h"

namespace disttrain::workerd {
namespace {

constexpr const char* kModel = "model.";  // the saved module has the user's model as this member

// One of ModelSpec::variables in the saved module. A tied parameter may be several tensors there.
struct Bound {
  std::vector<at::Tensor> tensors;
  float* value = nullptr;  // in the flat array of parameters
};

// Adds a tensor if it isn't one of `tensors` under another name.
void add(const at::Tensor& tensor, std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& other : tensors)
    if (other.is_same(tensor)) return;
  tensors.push_back(tensor);
}

class TorchScript final : public Computation {
 public:
  TorchScript(std::shared_ptr<program::Package> package, std::uint32_t threads)
      : package_(std::move(package)), sidecar_(package_->sidecar()), threads_(threads) {}

  // Loads the module and finds its variables.
  Status load() {
    // The executor that profiles would compile a graph again for each size of batch. The simple one runs it as it is.
    torch::jit::getExecutorMode() = true;
    torch::jit::getProfilingMode() = false;
    module_ = torch::jit::load(package_->path(), at::kCPU);
    std::map<std::string, at::Tensor> tensors;
    for (const auto& parameter : module_.named_parameters()) tensors.emplace(parameter.name, parameter.value);
    for (const auto& buffer : module_.named_buffers()) tensors.emplace(buffer.name, buffer.value);
    for (const VariableSpec& variable : sidecar_.model.variables) {
      Bound bound;
      std::vector<std::string> names = {variable.name};
      for (const auto& [alias, name] : sidecar_.aliases)
        if (name == variable.name) names.push_back(alias);
      for (const std::string& name : names)
        if (const auto found = tensors.find(kModel + name); found != tensors.end()) add(found->second, bound.tensors);
      if (bound.tensors.empty() || static_cast<std::uint64_t>(bound.tensors[0].numel()) != element_count(variable))
        return fail(ErrorCode::kData, package_->path() + ": the saved module has no variable " + variable.name +
                                          " of this size; export the model again");
      for (at::Tensor& tensor : bound.tensors) tensor.requires_grad_(variable.kind == VariableKind::kTrainable);
      bound_.push_back(std::move(bound));
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
    gradients_ = gradients;
    return guarded<Status>(package_->path() + ": opening the model", [&]() -> Status {
      for (std::size_t v = 0; v < bound_.size(); ++v) {
        const VariableSpec& variable = describe().variables[v];
        bound_[v].value = parameters.data() + layout.variable_begins[v];
        if (variable.kind == VariableKind::kState) continue;
        const at::Tensor view = view_of(bound_[v].value, variable);
        for (at::Tensor& tensor : bound_[v].tensors)
          if (tensor.scalar_type() == view.scalar_type()) tensor.set_data(view);
      }
      return {};
    });
  }

  Result<std::vector<float>> initial_values() override { return package_->initial_values(layout_); }

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    return run("step", "computing a step", batch, seed, [&](const std::vector<c10::IValue>& columns) {
      const c10::IValue returned = module_.get_method("step")(columns);
      const at::Tensor loss = returned.toTupleRef().elements().at(0).toTensor();
      const std::vector<at::Tensor> gradients = gradients_of(loss);
      const at::NoGradGuard no_graph;
      std::vector<const at::Tensor*> first(bound_.size());  // each trainable variable's first entry of `gradients`
      const at::Tensor* next = gradients.data();
      for (std::size_t v = 0; v < bound_.size(); ++v)
        if (describe().variables[v].kind == VariableKind::kTrainable)
          next = (first[v] = next) + bound_[v].tensors.size();
      order_.write_all([&](std::uint32_t variable, std::uint64_t) { write(variable, first[variable]); }, ready);
      return scored(returned, batch);
    });
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    return run("evaluate", "evaluating", batch, {}, [&](const std::vector<c10::IValue>& columns) {
      const at::NoGradGuard no_graph;
      return scored(module_.get_method("evaluate")(columns), batch);
    });
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    return run("predict", "predicting", batch, {}, [&](const std::vector<c10::IValue>& columns) {
      const at::NoGradGuard no_graph;
      const at::Tensor outputs = module_.get_method("predict")(columns).toTensor();
      TORCH_CHECK(
          outputs.scalar_type() == at::kFloat && outputs.numel() % static_cast<std::int64_t>(batch.examples) == 0,
          "the program didn't return one row of float32 for each record");
      outputs_ = outputs.contiguous();
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
      prepare_libtorch(threads_, seed);
      take_values();
      std::vector<c10::IValue> columns;
      for (const std::uint32_t c : found->second.columns)
        columns.emplace_back(view_of(batch.columns[c], sidecar_.model.columns[c], batch.examples));
      return use(columns);
    });
  }

  // Copies the values of the variables that don't lie in the flat array: state, which a step changes in place, and
  // parameters of another type than their variable.
  void take_values() {
    const at::NoGradGuard no_graph;
    for (std::size_t v = 0; v < bound_.size(); ++v) {
      const VariableSpec& variable = describe().variables[v];
      const at::Tensor value = view_of(bound_[v].value, variable);
      for (at::Tensor& tensor : bound_[v].tensors) {
        if (variable.kind == VariableKind::kTrainable && tensor.scalar_type() == value.scalar_type()) continue;
        tensor.copy_(tensor.is_floating_point() ? value : value.round());
      }
    }
  }

  // The gradients of all tensors of the trainable variables. A parameter that the loss doesn't depend on has none.
  std::vector<at::Tensor> gradients_of(const at::Tensor& loss) {
    std::vector<at::Tensor> leaves;
    for (std::size_t v = 0; v < bound_.size(); ++v)
      if (describe().variables[v].kind == VariableKind::kTrainable)
        leaves.insert(leaves.end(), bound_[v].tensors.begin(), bound_[v].tensors.end());
    return torch::autograd::grad({loss}, leaves, {}, std::nullopt, false, true);
  }

  // Writes the gradient of a variable, the sum over its tensors, or the new value of a state variable.
  void write(std::uint32_t v, const at::Tensor* gradients) {
    const VariableSpec& variable = describe().variables[v];
    float* out = gradients_.data() + layout_.variable_begins[v];
    if (variable.kind == VariableKind::kState)
      return write_result(bound_[v].tensors[0], variable, bound_[v].value, out);
    at::Tensor sum = view_of(out, variable);
    sum.zero_();
    for (std::size_t i = 0; i < bound_[v].tensors.size(); ++i)
      if (gradients[i].defined()) sum.add_(gradients[i]);
  }

  EngineOutput scored(const c10::IValue& returned, const Batch& batch) {
    const auto& elements = returned.toTupleRef().elements();
    const at::Tensor metrics = elements.at(1).toTensor().contiguous();
    TORCH_CHECK(metrics.scalar_type() == at::kDouble &&
                    static_cast<std::size_t>(metrics.numel()) == accumulator_size(sidecar_.model.metrics),
                "the program returned ", metrics.numel(), " numbers for the metrics; expected ",
                accumulator_size(sidecar_.model.metrics));
    const auto* numbers = metrics.const_data_ptr<double>();
    metrics_.assign(numbers, numbers + metrics.numel());
    EngineOutput output;
    output.loss_sum = elements.at(0).toTensor().item<double>() * static_cast<double>(batch.examples);
    output.examples = batch.examples;
    output.metrics = metrics_;
    return output;
  }

  const std::shared_ptr<program::Package> package_;
  const program::Sidecar& sidecar_;
  const std::uint32_t threads_;
  torch::jit::Module module_;
  std::vector<Bound> bound_;  // one for each of ModelSpec::variables
  Layout layout_;
  FlatOrder order_;
  std::span<float> gradients_;
  // Results that the caller may look at until the next call.
  std::vector<double> metrics_;
  at::Tensor outputs_;
};

}  // namespace

Result<std::unique_ptr<Computation>> make_torchscript(std::shared_ptr<program::Package> package,
                                                      std::uint32_t threads) {
  const std::string doing = package->path() + ": loading the program";
  return guarded<Result<std::unique_ptr<Computation>>>(doing, [&]() -> Result<std::unique_ptr<Computation>> {
    auto script = std::make_unique<TorchScript>(std::move(package), threads);
    if (Status loaded = script->load(); !loaded) return tl::unexpected(loaded.error());
    return script;
  });
}

}  // namespace disttrain::workerd
