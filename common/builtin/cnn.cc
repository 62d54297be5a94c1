#include "common/builtin/parts.h"

namespace disttrain::builtin {

namespace {

void add_convolution(ModelSpec& spec, const std::string& layer, std::uint64_t in, std::uint64_t out,
                     const Initializer& initializer) {
  constexpr std::uint64_t kSide = 5;
  spec.variables.push_back({.name = layer + "/weight",
                            .shape = {out, in, kSide, kSide},
                            .kind = VariableKind::kTrainable,
                            .initializer = initializer,
                            .fan_in = in * kSide * kSide,
                            .fan_out = out * kSide * kSide});
  spec.variables.push_back({.name = layer + "/bias",
                            .shape = {out},
                            .kind = VariableKind::kTrainable,
                            .initializer = kZeros,
                            .fan_in = 1,
                            .fan_out = out});
}

}  // namespace

Result<ModelSpec> cnn(const ModelSection& model) {
  constexpr std::uint64_t kClasses = 10;
  ModelSpec spec;
  add_convolution(spec, "layer0", 1, 32, model.initializer);
  add_convolution(spec, "layer1", 32, 64, model.initializer);
  add_dense(spec, "layer2", 4 * 4 * 64, 512, model.initializer);
  add_dense(spec, "layer3", 512, kClasses, model.initializer);
  spec.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {28 * 28}});
  add_wanted(spec, model, kClasses);
  return spec;
}

}  // namespace disttrain::builtin
