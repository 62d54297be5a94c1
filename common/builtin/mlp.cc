#include <string>

#include "common/builtin/parts.h"

namespace disttrain::builtin {

Result<ModelSpec> mlp(const ModelSection& model) {
  if (model.layers.size() < 2)
    return fail(ErrorCode::kConfig, "model.layers has " + std::to_string(model.layers.size()) +
                                        " sizes; expected at least 2: the number of inputs and the number of outputs");
  ModelSpec spec;
  for (const std::uint32_t size : model.layers)
    if (size == 0) return fail(ErrorCode::kConfig, "model.layers has a layer of size 0; expected at least 1");
  for (std::size_t i = 0; i + 1 < model.layers.size(); ++i)
    add_dense(spec, "layer" + std::to_string(i), model.layers[i], model.layers[i + 1], model.initializer);
  spec.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {model.layers.front()}});
  add_wanted(spec, model, model.layers.back());
  return spec;
}

Result<ModelSpec> linear(const ModelSection& model) {
  if (model.layers.size() != 2)
    return fail(ErrorCode::kConfig, "model.layers has " + std::to_string(model.layers.size()) +
                                        " sizes; expected 2 with builtin = \"linear\": the numbers of inputs and "
                                        "outputs, such as [784, 10]");
  return mlp(model);
}

}  // namespace disttrain::builtin
