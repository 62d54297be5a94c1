#include "workerd/predict/stored_parameters.h"

#include "common/checkpoint/safetensors.h"
#include "common/doubles.h"

namespace disttrain::workerd {

Status read_parameters(checkpoint::Weights& weights, const Layout& layout, std::span<float> values) {
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const VariableSpec& wanted = layout.model.variables[v];
    const std::optional<std::size_t> found = weights.find(wanted.name);
    if (!found.has_value() || weights.variables()[*found].shape != wanted.shape)
      return fail(ErrorCode::kConfig,
                  weights.path() + " has no variable " + wanted.name + " of the shape " +
                      checkpoint::shape_text(wanted.shape) +
                      ", which the job's model has: was the model's program changed since this checkpoint?");
    const std::span<float> words = values.subspan(layout.variable_begins[v], word_count(wanted));
    const Status read =
        with_type(wanted.dtype, [&]<typename T>(T) { return weights.read(*found, 0, values_in<T>(words)); });
    if (!read) return read;
  }
  return {};
}

}  // namespace disttrain::workerd
