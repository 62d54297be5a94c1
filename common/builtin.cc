#include "common/builtin.h"

#include <string>

namespace disttrain {

namespace {

constexpr std::uint64_t kMaxModelElements = std::uint64_t{1} << 36;  // 256 GiB of float32

VariableSpec weight(std::size_t layer, std::vector<std::uint64_t> shape, const Initializer& initializer,
                    std::uint64_t fan_in, std::uint64_t fan_out) {
  return VariableSpec{.name = "layer" + std::to_string(layer) + "/weight",
                      .shape = std::move(shape),
                      .kind = VariableKind::kTrainable,
                      .initializer = initializer,
                      .fan_in = fan_in,
                      .fan_out = fan_out};
}

VariableSpec bias(std::size_t layer, std::uint64_t outputs) {
  return VariableSpec{.name = "layer" + std::to_string(layer) + "/bias",
                      .shape = {outputs},
                      .kind = VariableKind::kTrainable,
                      .initializer = {InitializerKind::kZeros, 0.0},
                      .fan_in = 1,
                      .fan_out = outputs};
}

void add_dense(ModelSpec& spec, std::size_t layer, std::uint64_t in, std::uint64_t out,
               const Initializer& initializer) {
  spec.variables.push_back(weight(layer, {in, out}, initializer, in, out));
  spec.variables.push_back(bias(layer, out));
}

void add_convolution(ModelSpec& spec, std::size_t layer, std::uint64_t in, std::uint64_t out,
                     const Initializer& initializer) {
  constexpr std::uint64_t kSide = 5;
  spec.variables.push_back(
      weight(layer, {out, in, kSide, kSide}, initializer, in * kSide * kSide, out * kSide * kSide));
  spec.variables.push_back(bias(layer, out));
}

ColumnSpec inputs(std::uint64_t elements) {
  return ColumnSpec{.name = "inputs", .dtype = DType::kFloat32, .shape = {elements}};
}

Result<ModelSpec> mlp(const ModelSection& model) {
  if (model.layers.size() < 2)
    return fail(ErrorCode::kConfig,
                "model.layers has " + std::to_string(model.layers.size()) +
                    " sizes; an mlp needs at least 2: the number of inputs and the number of outputs");
  ModelSpec spec;
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i + 1 < model.layers.size(); ++i) {
    const std::uint64_t in = model.layers[i];
    const std::uint64_t out = model.layers[i + 1];
    if (in == 0 || out == 0) return fail(ErrorCode::kConfig, "model.layers has a layer of size 0; expected at least 1");
    if (in <= kMaxModelElements / out) elements += in * out + out;
    if (in > kMaxModelElements / out || elements > kMaxModelElements)
      return fail(ErrorCode::kConfig, "model.layers makes more than " + std::to_string(kMaxModelElements) +
                                          " parameters; use smaller layers");
    add_dense(spec, i, in, out, model.initializer);
  }
  spec.columns.push_back(inputs(model.layers.front()));
  return spec;
}

Result<ModelSpec> cnn(const ModelSection& model) {
  if (!model.layers.empty())
    return fail(ErrorCode::kConfig, "model.layers can't be set with model.builtin = \"cnn\", whose layers are fixed");
  ModelSpec spec;
  add_convolution(spec, 0, 1, 32, model.initializer);
  add_convolution(spec, 1, 32, 64, model.initializer);
  add_dense(spec, 2, 4 * 4 * 64, 512, model.initializer);
  add_dense(spec, 3, 512, 10, model.initializer);
  spec.columns.push_back(inputs(28 * 28));
  return spec;
}

}  // namespace

std::uint64_t output_elements(const ModelSpec& model) {
  // size of the last bias, which has one value per output
  return model.variables.empty() ? 0 : element_count(model.variables.back());
}

Result<ModelSpec> builtin_model(const ModelSection& model) {
  Result<ModelSpec> spec = ModelSpec{};
  if (model.builtin == "mlp")
    spec = mlp(model);
  else if (model.builtin == "cnn")
    spec = cnn(model);
  else
    return fail(ErrorCode::kConfig, "model.builtin is \"" + model.builtin + "\"; expected mlp or cnn");
  if (!spec) return spec;
  spec->programs.predicts = true;
  const std::uint64_t outputs = output_elements(*spec);
  if (model.loss != Loss::kSoftmaxCrossEntropy) {
    spec->columns.push_back({.name = "targets", .dtype = DType::kFloat32, .shape = {outputs}});
    return spec;
  }
  if (outputs == 1)
    return fail(ErrorCode::kConfig,
                "model.layers ends with 1 output, but model.loss = \"softmax_cross_entropy\" needs at least 2 outputs; "
                "use sigmoid_cross_entropy or mse");
  spec->columns.push_back({.name = "labels", .dtype = DType::kInt64, .shape = {}, .limit = outputs});
  spec->metrics.push_back({.name = "accuracy", .kind = MetricKind::kAccuracy});
  return spec;
}

}  // namespace disttrain
