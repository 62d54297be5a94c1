#include "common/builtin/parts.h"

namespace disttrain::builtin {

void add_variable(ModelSpec& spec, const std::string& name, std::vector<std::uint64_t> shape,
                  const Initializer& initializer) {
  spec.variables.push_back({.name = name, .shape = std::move(shape), .initializer = initializer});
}

void add_dense(ModelSpec& spec, const std::string& layer, std::uint64_t in, std::uint64_t out,
               const Initializer& initializer) {
  spec.variables.push_back({.name = layer + "/weight",
                            .shape = {in, out},
                            .kind = VariableKind::kTrainable,
                            .initializer = initializer,
                            .fan_in = in,
                            .fan_out = out});
  spec.variables.push_back({.name = layer + "/bias",
                            .shape = {out},
                            .kind = VariableKind::kTrainable,
                            .initializer = kZeros,
                            .fan_in = 1,
                            .fan_out = out});
}

void add_wanted(ModelSpec& spec, const ModelSection& model, std::uint64_t outputs) {
  if (model.has_weights) spec.columns.push_back({.name = "weights", .dtype = DType::kFloat32, .shape = {}});
  if (model.has_soft_labels)
    spec.columns.push_back({.name = "labels", .dtype = DType::kFloat32, .shape = {outputs}});
  else if (model.loss == Loss::kSoftmaxCrossEntropy)
    spec.columns.push_back({.name = "labels", .dtype = DType::kInt64, .shape = {}, .limit = outputs});
  else
    spec.columns.push_back({.name = "targets", .dtype = DType::kFloat32, .shape = {outputs}});
}

tl::unexpected<Error> refuse(const std::string& key, const std::string& found, const std::string& expected) {
  return fail(ErrorCode::kConfig, "model." + key + " is " + found + "; expected " + expected);
}

}  // namespace disttrain::builtin
