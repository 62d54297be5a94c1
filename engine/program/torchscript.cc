#include "engine/program/torchscript.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>
#include <torch/csrc/jit/serialization/import.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/printable.h"
#include "common/program/code_bounds.h"
#include "common/program/pickle_bounds.h"
#include "engine/program/torch_program.h"
#include "engine/ready_front.h"

namespace disttrain::workerd {
namespace {

constexpr const char* kModel = "model.";  // the saved module has the user's model as this member
// Of all code and pickles of the module, and of all members that are compressed. libtorch stores tensors as they are.
constexpr std::uint64_t kMaxCodeBytes = std::uint64_t{64} << 20;

// One of ModelSpec::variables in the saved module. A tied parameter may be several tensors there.
struct Bound {
  std::vector<at::Tensor> tensors;
  float* value = nullptr;   // in the flat array of parameters
  at::Tensor gradient;      // a view of the flat array of gradients
  std::size_t awaited = 0;  // of `tensors`: those whose gradient hasn't come in this step
  bool has_gradient = false;
};

// Autograd calls this hook when the gradient of a leaf is final. Then it doesn't read the leaf any more: see
// autograd_model.cc. The hook takes the gradient and gives autograd nothing to accumulate.
class GradientHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit GradientHook(std::function<void(const at::Tensor&)> take) : take_(std::move(take)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    take_(gradients[0]);
    return {at::Tensor()};
  }

 private:
  const std::function<void(const at::Tensor&)> take_;
};

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

class TorchScript final : public TorchProgram {
 public:
  TorchScript(std::shared_ptr<program::Package> package, std::uint32_t threads)
      : TorchProgram(std::move(package), threads) {}

  // Loads the module and finds its variables.
  Status load() {
    // The executor that profiles would compile a graph again for each size of batch. The simple one runs it as it is.
    torch::jit::getExecutorMode() = true;
    torch::jit::getProfilingMode() = false;
    if (Status checked = check_members(); !checked) return checked;
    module_ = torch::jit::load(package_->path(), at::kCPU);
    std::map<std::string, at::Tensor> tensors;
    for (const auto& parameter : module_.named_parameters()) tensors.emplace(parameter.name, parameter.value);
    for (const auto& buffer : module_.named_buffers()) tensors.emplace(buffer.name, buffer.value);
    std::map<std::string_view, std::vector<std::string_view>> names;  // of each variable, its own name first
    for (const VariableSpec& variable : sidecar_.model.variables) names[variable.name] = {variable.name};
    for (const auto& [alias, name] : sidecar_.aliases) names[name].push_back(alias);
    for (std::uint32_t v = 0; v < sidecar_.model.variables.size(); ++v) {
      const VariableSpec& variable = sidecar_.model.variables[v];
      Bound bound;
      std::set<const at::TensorImpl*> known;  // a tensor may have several names
      for (const std::string_view name : names[variable.name]) {
        const auto found = tensors.find(kModel + std::string(name));
        if (found != tensors.end() && known.insert(found->second.unsafeGetTensorImpl()).second)
          bound.tensors.push_back(found->second);
      }
      if (bound.tensors.empty() || static_cast<std::uint64_t>(bound.tensors[0].numel()) != element_count(variable))
        return fail(ErrorCode::kData, package_->path() + ": the saved module has no variable " + variable.name +
                                          " of this size; export the model again");
      for (at::Tensor& tensor : bound.tensors) {
        tensor.requires_grad_(variable.kind == VariableKind::kTrainable);
        if (variable.kind == VariableKind::kTrainable)
          torch::autograd::impl::add_hook(tensor, std::make_unique<GradientHook>([this, v](const at::Tensor& gradient) {
                                            take_gradient(v, gradient);
                                          }));
      }
      bound_.push_back(std::move(bound));
    }
    return {};
  }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == describe());
    layout_ = layout;
    front_ = ReadyFront(layout);
    gradients_ = gradients;
    return guarded<Status>(package_->path() + ": opening the model", [&]() -> Status {
      for (std::size_t v = 0; v < bound_.size(); ++v) {
        const VariableSpec& variable = describe().variables[v];
        bound_[v].value = parameters.data() + layout.variable_begins[v];
        if (variable.kind == VariableKind::kState) continue;
        bound_[v].gradient = view_of(gradients.data() + layout.variable_begins[v], variable);
        const at::Tensor view = view_of(bound_[v].value, variable);
        for (at::Tensor& tensor : bound_[v].tensors)
          if (tensor.scalar_type() == view.scalar_type()) tensor.set_data(view);
      }
      return {};
    });
  }

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    return run("step", "computing a step", batch, seed, [&](const std::vector<at::Tensor>& columns) {
      const c10::IValue returned = call("step", columns);
      const at::Tensor loss = returned.toTupleRef().elements().at(0).toTensor();
      front_.begin(ready);
      front_.note_loss(loss.item<double>());
      // A step has changed the state variables when it has computed the loss.
      for (std::uint32_t v = 0; v < bound_.size(); ++v)
        if (describe().variables[v].kind == VariableKind::kState) write_state(v, batch.examples);
      backward(loss);
      return scored_of(returned, batch);
    });
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    return run("evaluate", "evaluating", batch, {}, [&](const std::vector<at::Tensor>& columns) {
      const at::NoGradGuard no_graph;
      return scored_of(call("evaluate", columns), batch);
    });
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    return run("predict", "predicting", batch, {}, [&](const std::vector<at::Tensor>& columns) {
      const at::NoGradGuard no_graph;
      return predicted(call("predict", columns).toTensor(), batch);
    });
  }

 private:
  // libtorch compares no checksums, unpacks whatever is compressed, and overflows the stack if code or values
  // are nested deeply. It finds members by a zip reader of its own, without regard to case.
  Status check_members() {
    caffe2::serialize::PyTorchStreamReader reader(package_->path());
    const std::vector<program::Member>& members = package_->file().members();
    bool are_same = reader.getAllRecords().size() == members.size();
    std::uint64_t room = kMaxCodeBytes;
    program::CodeBounds code;
    for (const program::Member& member : members) {
      const std::string in_folder = member.name.substr(member.name.find('/') + 1);
      are_same = are_same && reader.hasRecord(in_folder) && reader.getRecordSize(in_folder) == member.bytes &&
                 reader.getRecordOffset(in_folder) == member.begin;
      if (!are_same)
        return fail(ErrorCode::kData, package_->path() + ": libtorch finds other members than the table of members " +
                                          "has, or two names differ only in case; export the model again");
      const std::string name = lower_case(member.name);
      const bool is_code = name.ends_with(".py");
      const bool is_pickle = name.ends_with("pkl");
      if (!is_code && !is_pickle && member.is_stored) {
        if (Status verified = package_->file().verify(member); !verified) return verified;
        continue;
      }
      const Result<std::string> content = package_->file().unpack(member, room);
      if (!content) return tl::unexpected(content.error());
      room -= content->size();
      const auto deep = is_code     ? code.add(member.name, *content)
                        : is_pickle ? program::find_deep_pickle(*content)
                                    : std::nullopt;
      if (deep)
        return fail(ErrorCode::kData, package_->path() + ": member " + printable(member.name) +
                                          " can't be loaded: " + *deep + "; export the model again");
    }
    if (const auto chain = code.find_long_chain())
      return fail(ErrorCode::kData,
                  package_->path() + ": its code can't be loaded: " + *chain + "; export the model again");
    return {};
  }

  c10::IValue call(const char* program, const std::vector<at::Tensor>& columns) {
    take_values();
    return module_.get_method(program)({columns.begin(), columns.end()});
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

  // Writes all gradients, and announces each when it is final.
  void backward(const at::Tensor& loss) {
    for (Bound& bound : bound_) {
      bound.awaited = bound.tensors.size();
      bound.has_gradient = false;
    }
    torch::autograd::backward({loss});
    // The loss doesn't depend on these parameters.
    for (std::uint32_t v = 0; v < bound_.size(); ++v)
      if (describe().variables[v].kind == VariableKind::kTrainable && bound_[v].awaited > 0) end_gradient(v);
  }

  // The gradient of a variable is the sum over its tensors.
  void take_gradient(std::uint32_t v, const at::Tensor& gradient) {
    Bound& bound = bound_[v];
    const at::NoGradGuard no_graph;
    if (gradient.defined() && std::exchange(bound.has_gradient, true))
      bound.gradient.add_(gradient);
    else if (gradient.defined())
      bound.gradient.copy_(gradient);
    if (--bound.awaited == 0) end_gradient(v);
  }

  void end_gradient(std::uint32_t v) {
    if (!bound_[v].has_gradient) bound_[v].gradient.zero_();
    front_.final_whole(v);
  }

  void write_state(std::uint32_t v, std::uint64_t examples) {
    const at::NoGradGuard no_graph;
    write_result(bound_[v].tensors[0], describe().variables[v], bound_[v].value, examples,
                 gradients_.data() + layout_.variable_begins[v]);
    front_.final_whole(v);
  }

  EngineOutput scored_of(const c10::IValue& returned, const Batch& batch) {
    const auto& elements = returned.toTupleRef().elements();
    return scored(elements.at(0).toTensor().item<double>() * static_cast<double>(batch.examples),
                  elements.at(1).toTensor(), batch);
  }

  torch::jit::Module module_;
  std::vector<Bound> bound_;  // one for each of ModelSpec::variables
  ReadyFront front_;
  std::span<float> gradients_;
};

}  // namespace

Result<std::unique_ptr<Computation>> make_torchscript(std::shared_ptr<program::Package> package,
                                                      std::uint32_t threads) {
  const std::string doing = package->path() + ": loading the program";
  return guarded<Result<std::unique_ptr<Computation>>>(
      doing,
      [&]() -> Result<std::unique_ptr<Computation>> {
        auto script = std::make_unique<TorchScript>(std::move(package), threads);
        if (Status loaded = script->load(); !loaded) return tl::unexpected(loaded.error());
        return script;
      },
      kDamaged);
}

}  // namespace disttrain::workerd
