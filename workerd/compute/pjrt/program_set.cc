#include "workerd/compute/pjrt/program_set.h"

#include <algorithm>
#include <string>

namespace disttrain::workerd::pjrt {
namespace {

const char* name_of(Program program) {
  return program == Program::kStep ? "step" : program == Program::kEvaluate ? "evaluate" : "predict";
}

std::string name_of(const StableHloProgram& program) {
  return std::string(name_of(program.program)) + "-" + std::to_string(program.batch);
}

ArrayType float_array(const std::vector<std::uint64_t>& shape) {
  return {abi::kFloat32Type, {shape.begin(), shape.end()}};
}

bool fits_prediction(const std::vector<ArrayType>& outputs, std::uint64_t batch) {
  if (outputs.size() != 1 || outputs[0].element != abi::kFloat32Type || outputs[0].dims.empty()) return false;
  const std::vector<std::int64_t>& dims = outputs[0].dims;
  return dims[0] == static_cast<std::int64_t>(batch) && *std::min_element(dims.begin(), dims.end()) > 0;
}

// See StableHloProgram. For a prediction: an example of what it may return.
std::vector<ArrayType> expected_outputs(const StableHloProgram& program, const ModelSpec& spec) {
  if (program.program == Program::kPredict) return {float_array({program.batch, 1})};
  std::vector<ArrayType> expected = {float_array({})};
  if (!spec.metrics.empty()) expected.push_back(float_array({accumulator_size(spec.metrics)}));
  if (program.program == Program::kStep)
    for (const VariableSpec& variable : spec.variables) {
      expected.push_back(float_array(variable.shape));
      if (variable.dtype == DType::kFloat64) expected.back().element = abi::kFloat64Type;
    }
  return expected;
}

Status check_outputs(const StableHloProgram& program, const ModelSpec& spec, const std::vector<ArrayType>& outputs) {
  if (program.program == Program::kPredict && fits_prediction(outputs, program.batch)) return {};
  const std::vector<ArrayType> expected = expected_outputs(program, spec);
  for (std::size_t i = 0; i < std::max(outputs.size(), expected.size()); ++i) {
    const std::string found = i < outputs.size() ? to_string(outputs[i]) : "nothing";
    const std::string wanted = i < expected.size() ? to_string(expected[i]) : "nothing";
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

std::vector<std::size_t> ProgramSet::largest_first(Program program) const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < model_.programs.size(); ++i)
    if (model_.programs[i].program == program) indices.push_back(i);
  std::sort(indices.begin(), indices.end(),
            [this](std::size_t a, std::size_t b) { return model_.programs[a].batch > model_.programs[b].batch; });
  return indices;
}

Status ProgramSet::takes(Program program, std::uint64_t examples) const {
  const std::vector<std::size_t> indices = largest_first(program);
  if (indices.empty())
    return fail(ErrorCode::kConfig, std::string("the model has no program \"") + name_of(program) +
                                        "\"; export it with " + name_of(program) + "_fn");
  std::uint64_t rest = examples;
  std::string sizes;
  for (const std::size_t i : indices) {
    rest %= model_.programs[i].batch;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(model_.programs[i].batch);
  }
  if (rest > 0) return cannot_compose(examples, rest, sizes);
  return {};
}

Result<std::vector<Part>> ProgramSet::parts_of(Program program, std::uint64_t examples) {
  if (Status taken = takes(program, examples); !taken) return tl::unexpected(taken.error());
  std::vector<Part> parts;
  std::uint64_t begin = 0;
  for (const std::size_t i : largest_first(program)) {
    const std::uint64_t size = model_.programs[i].batch;
    for (; examples - begin >= size; begin += size) {
      const Result<Executable*> compiled = executable(i);
      if (!compiled) return tl::unexpected(compiled.error());
      parts.push_back({begin, size, *compiled});
    }
  }
  return parts;
}

Result<Executable*> ProgramSet::executable(std::size_t program) {
  std::unique_ptr<Executable>& entry = executables_[program];
  if (entry == nullptr) {
    const StableHloProgram& which = model_.programs[program];
    const Result<std::string> code = model_.source->code(which);
    if (!code) return tl::unexpected(code.error());
    Result<std::unique_ptr<Executable>> compiled = Executable::compile(client_, *code, name_of(which));
    if (!compiled) return tl::unexpected(compiled.error());
    if (Status status = check_outputs(which, model_.spec, (*compiled)->outputs()); !status)
      return tl::unexpected(status.error());
    entry = std::move(*compiled);
  }
  return entry.get();
}

}  // namespace disttrain::workerd::pjrt
