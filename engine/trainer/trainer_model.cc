#include "engine/trainer/trainer_model.h"

#include "common/doubles.h"

namespace disttrain::workerd {

ModelSpec spec_of(const TrainerModel& model, const std::vector<ColumnSpec>& columns) {
  ModelSpec spec;
  spec.variables = model.variables;
  spec.columns = columns;
  for (ColumnSpec& column : spec.columns) column.parts.clear();  // only the trainer uses them
  if (spec.columns.empty()) spec.columns = {ColumnSpec{kRecordColumn, DType::kInt64, {}, false, 0}};
  spec.metrics = model.metrics;
  spec.programs = model.programs;
  spec.brings_values = true;
  return spec;
}

Status check_data(const TrainerModel& model, const std::vector<ColumnSpec>& columns) {
  if (columns.empty() && model.records == 0)
    return fail(ErrorCode::kConfig,
                "has no data set of its own, and the job has none; pass a data set to job.batches(), or add a section "
                "[data] to job.toml");
  if (!columns.empty() && model.records > 0)
    return fail(ErrorCode::kConfig,
                "has a data set of its own, but the job has one, too; call job.batches() without a data set, or remove "
                "the section [data] from job.toml");
  return {};
}

std::string problem_with_values(const Layout& layout, std::span<const float> values) {
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const VariableSpec& variable = layout.model.variables[v];
    const auto bad = first_nonfinite(values.subspan(layout.variable_begins[v], word_count(variable)), variable.dtype);
    if (!bad) continue;
    const bool is_state = variable.kind == VariableKind::kState;
    return "gave initial values that are NaN or infinite: the variable \"" + variable.name + "\" has one at index " +
           std::to_string(*bad) + " of its " + std::to_string(element_count(variable)) +
           " values in row-major order; let the script of model.trainer give the model finite values before " +
           (is_state ? "job.wrap(), or keep a constant out of the state (a torch buffer by persistent=False)"
                     : "its loop");
  }
  return "";
}

}  // namespace disttrain::workerd
