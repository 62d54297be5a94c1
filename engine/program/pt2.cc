// This file loads the compiled libraries itself. PyTorch's AOTIModelPackageLoader would compile when a library is
// missing, and workerd never compiles.
#include "engine/program/pt2.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>

#include <algorithm>
#include <functional>
#include <map>

#include "common/check.h"
#include "engine/program/torch_program.h"
#include "engine/program/unpacked.h"
#include "engine/ready_front.h"

extern "C" int disttrain_torch_name();

namespace disttrain::workerd {
namespace {

using Runner = torch::inductor::AOTIModelContainerRunnerCpu;

// A stage with its library. The lists are in the order of the flat arrays where that matters.
struct LoadedStage {
  program::SidecarStage numbers;
  std::unique_ptr<Runner> runner;
  std::vector<std::uint32_t> dropped;  // of numbers.takes: those that no later stage takes
  std::vector<std::uint32_t> ended;    // of numbers.gives: those that no later stage takes, but for the scores
  std::vector<std::uint32_t> written;  // of ModelSpec::variables: those whose result this stage gives
  std::vector<std::uint32_t> final;    // those that have their result, and that no later stage reads
};

class Pt2 final : public TorchProgram {
 public:
  Pt2(std::shared_ptr<program::Package> package, std::uint32_t threads) : TorchProgram(std::move(package), threads) {}

  // Loads the libraries and the frozen variables.
  Status load() {
    for (const auto& [name, program] : sidecar_.programs)
      if (Status loaded = load_program(name, program); !loaded) return loaded;
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

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == describe());
    layout_ = layout;
    front_ = ReadyFront(layout);
    parameters_ = parameters;
    gradients_ = gradients;
    arrange();
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

  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override {
    return run("step", "computing a step", batch, seed, [&](std::vector<at::Tensor> columns) {
      front_.begin(ready);
      const std::vector<at::Tensor> values = compute("step", std::move(columns));
      const at::Tensor* const results = &values[first_result("step")];
      return scored(results[0].item<double>(), results[1], batch);
    });
  }

  Result<EngineOutput> evaluate(const Batch& batch) override {
    return run("evaluate", "evaluating", batch, {}, [&](std::vector<at::Tensor> columns) {
      const std::vector<at::Tensor> values = compute("evaluate", std::move(columns));
      const at::Tensor* const results = &values[first_result("evaluate")];
      return scored(results[0].item<double>(), results[1], batch);
    });
  }

  Result<EngineOutput> predict(const Batch& batch) override {
    return run("predict", "predicting", batch, {}, [&](std::vector<at::Tensor> columns) {
      return predicted(compute("predict", std::move(columns))[first_result("predict")], batch);
    });
  }

 private:
  std::size_t first_result(const std::string& program) const {
    return sidecar_.variables.size() + sidecar_.programs.at(program).columns.size();
  }

  Status load_program(const std::string& name, const program::SidecarProgram& program) {
    std::vector<LoadedStage>& stages = stages_[name];
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      const std::string library = program.stages.size() == 1 ? name : name + "_" + std::to_string(s);
      Result<UnpackedProgram> unpacked = UnpackedProgram::make(package_->file(), library);
      if (!unpacked) return tl::unexpected(unpacked.error());
      // The library stays loaded when its file is removed, at the end of this block.
      stages.push_back({program.stages[s], std::make_unique<Runner>(unpacked->library(), 1, true), {}, {}, {}, {}});
    }
    return {};
  }

  // Finds out for each stage of each program what becomes of the values after it.
  void arrange() {
    for (auto& [name, stages] : stages_) {
      std::map<std::uint32_t, std::size_t> last;  // value -> the last stage that takes it
      for (std::size_t s = 0; s < stages.size(); ++s) {
        for (const std::uint32_t value : stages[s].numbers.takes) last[value] = s;
        stages[s].dropped.clear();
        stages[s].ended.clear();
        stages[s].written.clear();
        stages[s].final.clear();
      }
      const auto first = static_cast<std::uint32_t>(first_result(name) + kScores);
      for (const auto& [value, stage] : last)
        if (value >= first) stages[stage].dropped.push_back(value);
      for (LoadedStage& stage : stages)
        for (const std::uint32_t value : stage.numbers.gives)
          if (value >= first && !last.contains(value)) stage.ended.push_back(value);
      if (name != "step") continue;
      const std::vector<std::uint32_t> inputs = inputs_of_model();
      for (std::size_t s = 0; s < stages.size(); ++s)
        for (const std::uint32_t value : stages[s].numbers.gives) {
          if (value < first || value - first >= inputs.size()) continue;
          const auto read = last.find(inputs[value - first]);
          const std::size_t end = read == last.end() ? s : std::max(s, read->second);
          stages[s].written.push_back(value - first);
          stages[end].final.push_back(value - first);
        }
      for (LoadedStage& stage : stages)
        for (std::vector<std::uint32_t>* variables : {&stage.written, &stage.final})
          std::sort(variables->begin(), variables->end(), [this](std::uint32_t a, std::uint32_t b) {
            return layout_.variable_begins[a] < layout_.variable_begins[b];
          });
    }
  }

  // For each of ModelSpec::variables, its index in the sidecar.
  std::vector<std::uint32_t> inputs_of_model() const {
    std::vector<std::uint32_t> inputs;
    for (std::uint32_t v = 0; v < sidecar_.variables.size(); ++v)
      if (sidecar_.variables[v].kind != program::SidecarVariable::Kind::kFrozen) inputs.push_back(v);
    return inputs;
  }

  // Runs the stages of a program. Returns the values by their numbers: the inputs and the first results.
  std::vector<at::Tensor> compute(const std::string& program, std::vector<at::Tensor> columns) {
    const c10::InferenceMode no_graph;
    const auto examples = static_cast<std::uint64_t>(columns.at(0).size(0));
    std::vector<at::Tensor> values = inputs_;
    std::move(columns.begin(), columns.end(), std::back_inserter(values));
    values.resize(sidecar_.programs.at(program).values);
    for (const LoadedStage& stage : stages_.at(program)) {
      std::vector<at::Tensor> taken;
      for (const std::uint32_t value : stage.numbers.takes) taken.push_back(values[value]);
      // The stage frees each of these tensors when it has read it.
      for (const std::uint32_t value : stage.dropped) values[value] = at::Tensor();
      std::vector<at::Tensor> given = stage.runner->boxed_run(std::move(taken));
      TORCH_CHECK(given.size() == stage.numbers.gives.size(), "the program returned ", given.size(),
                  " tensors; expected ", stage.numbers.gives.size());
      for (std::size_t i = 0; i < given.size(); ++i) values[stage.numbers.gives[i]] = kept(std::move(given[i]));
      write(stage, values, examples);
      for (const std::uint32_t value : stage.ended) values[value] = at::Tensor();
    }
    return values;
  }

  // Parameters may change as soon as they are announced, so a tensor for a later stage can't be a part of them.
  at::Tensor kept(at::Tensor value) const {
    TORCH_CHECK(value.defined(), "the program returned no tensor");
    const auto* const data = static_cast<const float*>(value.const_data_ptr());
    const bool is_parameter =
        !std::less<>()(data, parameters_.data()) && std::less<>()(data, parameters_.data() + parameters_.size());
    return is_parameter ? value.clone() : std::move(value);
  }

  // Writes the results of variables that a stage has given, and announces what is final.
  void write(const LoadedStage& stage, const std::vector<at::Tensor>& values, std::uint64_t examples) {
    if (stage.written.empty() && stage.final.empty()) return;
    // In most programs the first stage gives the loss.
    const at::Tensor& loss = values[first_result("step")];
    if (loss.defined()) front_.note_loss(loss.item<double>() / static_cast<double>(examples));
    auto final = stage.final.begin();
    const auto announce = [&] { front_.final_whole(*final++); };
    for (const std::uint32_t v : stage.written) {
      const std::uint64_t begin = layout_.variable_begins[v];
      const std::size_t value = first_result("step") + kScores + v;
      write_result(values[value], describe().variables[v], parameters_.data() + begin, examples,
                   gradients_.data() + begin);
      while (final != stage.final.end() && layout_.variable_begins[*final] <= begin) announce();
    }
    while (final != stage.final.end()) announce();
  }

  static constexpr std::size_t kScores = 2;  // a step's results begin with the loss and the metrics

  std::map<std::string, std::vector<LoadedStage>> stages_;  // by program
  std::vector<at::Tensor> inputs_;                          // one for each variable of the sidecar
  ReadyFront front_;
  std::span<float> parameters_;
  std::span<float> gradients_;
};

// Whether this processor has the instructions that the package was compiled for.
Status check_cpu(const program::Package& package) {
  const std::string& needed = package.sidecar().cpu;
  if (!needed.empty() && needed != "x86-64-v3" && needed != "x86-64-v4")
    return fail(ErrorCode::kConfig,
                package.path() + " is compiled for processors of level \"" + needed +
                    "\", which this worker doesn't know; expected x86-64-v3 or x86-64-v4: export the "
                    "model again with this version of disttrain");
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
  return guarded<Result<std::unique_ptr<Computation>>>(
      doing,
      [&]() -> Result<std::unique_ptr<Computation>> {
        auto pt2 = std::make_unique<Pt2>(std::move(package), threads);
        if (Status loaded = pt2->load(); !loaded) return tl::unexpected(loaded.error());
        return pt2;
      },
      kDamaged);
}

}  // namespace disttrain::workerd
