// The parts of which the descriptions of the builtin models consist.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain::builtin {

inline constexpr Initializer kZeros{InitializerKind::kZeros, 0.0};
inline constexpr Initializer kOnes{InitializerKind::kOnes, 0.0};
constexpr Initializer normal(double deviation) {
  return {InitializerKind::kNormal, deviation};
}
constexpr Initializer uniform(double limit) {
  return {InitializerKind::kUniform, limit};
}

// Adds a trainable variable.
void add_variable(ModelSpec& spec, const std::string& name, std::vector<std::uint64_t> shape,
                  const Initializer& initializer);

// Adds the weight [in, out] and the bias [out] of a dense layer.
void add_dense(ModelSpec& spec, const std::string& layer, std::uint64_t in, std::uint64_t out,
               const Initializer& initializer);

// Adds the column "labels" if the loss needs labels, otherwise the column "targets". Soft labels are one number for
// each class. If the data has weights, "weights" comes before.
void add_wanted(ModelSpec& spec, const ModelSection& model, std::uint64_t outputs);

// "model.KEY is FOUND; expected EXPECTED".
tl::unexpected<Error> refuse(const std::string& key, const std::string& found, const std::string& expected);

// The number of blocks in each of a resnet's four stages. None if there is no resnet of this depth.
std::optional<std::array<std::uint32_t, 4>> resnet_blocks(std::uint32_t depth);

// Each model is described in builtin.h. Fails with kConfig if the model can't be built as configured. The caller checks
// what all models have in common: their size, class weights and metrics.
Result<ModelSpec> linear(const ModelSection& model);
Result<ModelSpec> mlp(const ModelSection& model);
Result<ModelSpec> cnn(const ModelSection& model);
Result<ModelSpec> resnet(const ModelSection& model);
Result<ModelSpec> transformer(const ModelSection& model);
Result<ModelSpec> matrix_factorization(const ModelSection& model);
Result<ModelSpec> wide_deep(const ModelSection& model);

}  // namespace disttrain::builtin
