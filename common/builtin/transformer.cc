#include <cmath>
#include <string>

#include "common/builtin/parts.h"

namespace disttrain::builtin {

Result<ModelSpec> transformer(const ModelSection& model) {
  constexpr double kDeviation = 0.02;
  const TransformerSection& section = model.transformer;
  if (model.loss != Loss::kSoftmaxCrossEntropy)
    return refuse("loss", "another one", "\"softmax_cross_entropy\" with builtin = \"transformer\"");
  if (section.heads == 0 || section.width % section.heads != 0)
    return refuse("transformer.heads", std::to_string(section.heads),
                  "a divisor of model.transformer.width, which is " + std::to_string(section.width));
  // By default tokens are bytes.
  const std::uint64_t vocabulary = section.vocabulary == 0 ? 256 : section.vocabulary;
  const std::uint64_t width = section.width;
  // The projections add to the residual stream 2 * blocks times; smaller initial values keep its variance near 1.
  const Initializer projection = normal(kDeviation / std::sqrt(2.0 * static_cast<double>(section.blocks)));
  ModelSpec spec;
  add_variable(spec, "token_embedding/weight", {vocabulary, width}, normal(kDeviation));
  add_variable(spec, "position_embedding/weight", {section.context, width}, normal(kDeviation));
  for (std::uint32_t b = 0; b < section.blocks; ++b) {
    const std::string block = "block" + std::to_string(b);
    add_variable(spec, block + "/attention/norm/weight", {width}, kOnes);
    add_variable(spec, block + "/attention/weight", {width, 3 * width}, normal(kDeviation));
    add_variable(spec, block + "/attention/projection/weight", {width, width}, projection);
    add_variable(spec, block + "/mlp/norm/weight", {width}, kOnes);
    add_variable(spec, block + "/mlp/weight", {width, 4 * width}, normal(kDeviation));
    add_variable(spec, block + "/mlp/projection/weight", {4 * width, width}, projection);
  }
  add_variable(spec, "norm/weight", {width}, kOnes);
  if (!section.tied_embeddings) add_variable(spec, "output/weight", {width, vocabulary}, normal(kDeviation));
  spec.columns.push_back({.name = "tokens",
                          .dtype = vocabulary <= 256 ? DType::kUint8 : DType::kInt32,
                          .shape = {std::uint64_t{section.context} + 1},
                          .ragged = true,
                          .limit = vocabulary});
  return spec;
}

}  // namespace disttrain::builtin
