#include "engine/pjrt/program_set.h"

#include <algorithm>
#include <functional>
#include <string>

#include "engine/pjrt/step_plan.h"

namespace disttrain::workerd::pjrt {
namespace {

const char* name_of(Program program) {
  return program == Program::kStep ? "step" : program == Program::kEvaluate ? "evaluate" : "predict";
}

std::string name_of(const StableHloProgram& program) {
  const std::string stage = program.stage ? "_" + std::to_string(*program.stage) : "";
  return name_of(program.program) + stage + "-" + std::to_string(program.batch);
}

ArrayType float_array(const std::vector<std::uint64_t>& shape) {
  return {abi::kFloat32Type, {shape.begin(), shape.end()}};
}

bool fits_prediction(const std::vector<ArrayType>& outputs, std::uint64_t batch) {
  if (outputs.size() != 1 || outputs[0].element != abi::kFloat32Type || outputs[0].dims.empty()) return false;
  const std::vector<std::int64_t>& dims = outputs[0].dims;
  return dims[0] == static_cast<std::int64_t>(batch) && *std::min_element(dims.begin(), dims.end()) > 0;
}

// See StableHloProgram. For a prediction: an example of what it may return. For a stage: nothing for arrays that it
// passes to later ones, which may have any type.
std::vector<std::optional<ArrayType>> expected_outputs(const StableHloProgram& program, const StableHloModel& model) {
  const ModelSpec& spec = model.spec;
  if (program.program == Program::kPredict) return {float_array({program.batch, 1})};
  std::vector<std::optional<ArrayType>> results = {float_array({}), float_array({accumulator_size(spec.metrics)})};
  if (program.program == Program::kStep)
    for (const VariableSpec& variable : spec.variables) {
      results.push_back(float_array(variable.shape));
      if (variable.dtype == DType::kFloat64) results.back()->element = abi::kFloat64Type;
    }
  if (!program.stage) {
    if (spec.metrics.empty()) results.erase(results.begin() + 1);
    return results;
  }
  std::vector<std::optional<ArrayType>> expected;
  for (const std::uint32_t value : model.stages[*program.stage].gives) {
    const std::size_t result = value - step_inputs(model);
    expected.push_back(result < results.size() ? results[result] : std::nullopt);
  }
  return expected;
}

Status check_outputs(const StableHloProgram& program, const StableHloModel& model,
                     const std::vector<ArrayType>& outputs) {
  if (program.program == Program::kPredict && fits_prediction(outputs, program.batch)) return {};
  const std::vector<std::optional<ArrayType>> expected = expected_outputs(program, model);
  for (std::size_t i = 0; i < std::max(outputs.size(), expected.size()); ++i) {
    if (i < outputs.size() && i < expected.size() && !expected[i]) continue;
    const std::string found = i < outputs.size() ? to_string(outputs[i]) : "nothing";
    const std::string wanted = i >= expected.size() ? "nothing" : expected[i] ? to_string(*expected[i]) : "an array";
    if (found != wanted)
      return fail(ErrorCode::kConfig, "program \"" + name_of(program) + "\" doesn't fit its model: output " +
                                          std::to_string(i) + " is " + found + "; expected " + wanted +
                                          "; export the model again");
  }
  return {};
}

tl::unexpected<Error> cannot_compose(std::uint64_t examples, std::uint64_t rest, const std::string& sizes) {
  return fail(ErrorCode::kConfig, "can't compute a batch of " + std::to_string(examples) +
                                      " examples: the model was exported for batches of " + sizes + ", which leave " +
                                      std::to_string(rest) + " over; export it with " + std::to_string(examples) +
                                      " or 1 among its batch_sizes");
}

}  // namespace

std::vector<std::uint64_t> ProgramSet::largest_first(Program program) const {
  std::vector<std::uint64_t> sizes;
  for (const StableHloProgram& each : model_.programs)
    if (each.program == program && each.stage.value_or(0) == 0) sizes.push_back(each.batch);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return sizes;
}

Status ProgramSet::takes(Program program, std::uint64_t examples) const {
  const std::vector<std::uint64_t> sizes = largest_first(program);
  if (sizes.empty())
    return fail(ErrorCode::kConfig, std::string("the model has no program \"") + name_of(program) +
                                        "\"; export it with " + name_of(program) + "_fn");
  std::uint64_t rest = examples;
  std::string list;
  for (const std::uint64_t size : sizes) {
    rest %= size;
    list += (list.empty() ? "" : ", ") + std::to_string(size);
  }
  if (rest > 0) return cannot_compose(examples, rest, list);
  return {};
}

Result<std::vector<Part>> ProgramSet::parts_of(Program program, std::uint64_t examples) {
  if (Status taken = takes(program, examples); !taken) return tl::unexpected(taken.error());
  std::vector<Part> parts;
  std::uint64_t begin = 0;
  for (const std::uint64_t size : largest_first(program)) {
    for (; examples - begin >= size; begin += size) {
      Result<std::vector<Executable*>> stages = stages_of(program, size);
      if (!stages) return tl::unexpected(stages.error());
      parts.push_back({begin, size, std::move(*stages)});
    }
  }
  return parts;
}

Result<std::vector<Executable*>> ProgramSet::stages_of(Program program, std::uint64_t size) {
  std::vector<Executable*> stages;
  for (std::size_t i = 0; i < model_.programs.size(); ++i) {
    const StableHloProgram& each = model_.programs[i];
    if (each.program != program || each.batch != size) continue;
    const Result<Executable*> compiled = executable(i);
    if (!compiled) return tl::unexpected(compiled.error());
    stages.resize(std::max<std::size_t>(stages.size(), each.stage.value_or(0) + 1));
    stages[each.stage.value_or(0)] = *compiled;
  }
  return stages;
}

Result<Executable*> ProgramSet::executable(std::size_t program) {
  std::unique_ptr<Executable>& entry = executables_[program];
  if (entry == nullptr) {
    const StableHloProgram& which = model_.programs[program];
    const Result<std::string> code = model_.source->code(which);
    if (!code) return tl::unexpected(code.error());
    Result<std::unique_ptr<Executable>> compiled = Executable::compile(client_, *code, name_of(which));
    if (!compiled) return tl::unexpected(compiled.error());
    if (Status status = check_outputs(which, model_, (*compiled)->outputs()); !status)
      return tl::unexpected(status.error());
    entry = std::move(*compiled);
  }
  return entry.get();
}

}  // namespace disttrain::workerd::pjrt
