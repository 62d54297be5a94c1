#include <string>

#include "common/builtin/parts.h"

namespace disttrain::builtin {

Result<ModelSpec> matrix_factorization(const ModelSection& model) {
  constexpr double kDeviation = 0.1;
  constexpr std::uint32_t kMost = 1 << 24;  // the numbers of users and items come as float32
  const MatrixFactorizationSection& section = model.matrix_factorization;
  const std::string expected = " from 1 to " + std::to_string(kMost);
  if (section.users == 0 || section.users > kMost)
    return refuse("matrix_factorization.users", std::to_string(section.users), "the number of users," + expected);
  if (section.items == 0 || section.items > kMost)
    return refuse("matrix_factorization.items", std::to_string(section.items), "the number of items," + expected);
  ModelSpec spec;
  add_variable(spec, "user/factors", {section.users, section.factors}, normal(kDeviation));
  add_variable(spec, "user/bias", {section.users}, kZeros);
  add_variable(spec, "item/factors", {section.items, section.factors}, normal(kDeviation));
  add_variable(spec, "item/bias", {section.items}, kZeros);
  add_variable(spec, "bias", {1}, kZeros);
  spec.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {2}});
  add_wanted(spec, model, 1);
  return spec;
}

}  // namespace disttrain::builtin
