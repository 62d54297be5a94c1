#include "engine/program/torch_program.h"

#include "engine/program/values.h"

namespace disttrain::workerd {

Status TorchProgram::takes(Program, std::uint64_t examples) const {
  return check_size(sidecar_, examples, package_->path());
}

Result<const program::SidecarProgram*> TorchProgram::find(const std::string& program, const char* doing,
                                                          const Batch& batch) const {
  const auto found = sidecar_.programs.find(program);
  if (found == sidecar_.programs.end())
    return fail(ErrorCode::kConfig, package_->path() + " has no program for " + doing);
  if (Status checked = check_batch(sidecar_, found->second.columns, batch, package_->path()); !checked)
    return tl::unexpected(checked.error());
  return &found->second;
}

std::vector<at::Tensor> TorchProgram::columns_of(const program::SidecarProgram& program, const Batch& batch) const {
  std::vector<at::Tensor> columns;
  for (const std::uint32_t c : program.columns)
    columns.push_back(view_of(batch.columns[c], sidecar_.model.columns[c], batch.examples));
  return columns;
}

EngineOutput TorchProgram::scored(double loss_sum, const at::Tensor& metrics, const Batch& batch) {
  TORCH_CHECK(metrics.scalar_type() == at::kDouble &&
                  static_cast<std::size_t>(metrics.numel()) == accumulator_size(sidecar_.model.metrics),
              "the program returned ", metrics.numel(), " numbers for the metrics; expected ",
              accumulator_size(sidecar_.model.metrics));
  const at::Tensor numbers = metrics.contiguous();
  metrics_.assign(numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel());
  EngineOutput output;
  output.loss_sum = loss_sum;
  output.examples = batch.examples;
  output.metrics = metrics_;
  return output;
}

EngineOutput TorchProgram::predicted(const at::Tensor& outputs, const Batch& batch) {
  TORCH_CHECK(outputs.scalar_type() == at::kFloat && outputs.numel() % static_cast<std::int64_t>(batch.examples) == 0,
              "the program didn't return one row of float32 for each record");
  outputs_ = outputs.contiguous();
  EngineOutput output;
  output.examples = batch.examples;
  output.outputs = {outputs_.const_data_ptr<float>(), static_cast<std::size_t>(outputs_.numel())};
  return output;
}

}  // namespace disttrain::workerd
