#include <algorithm>
#include <cmath>
#include <string>

#include "common/builtin/parts.h"

namespace disttrain::builtin {

Result<ModelSpec> wide_deep(const ModelSection& model) {
  constexpr Initializer kGlorot{InitializerKind::kGlorot, 0.0};
  const WideDeepSection& section = model.wide_deep;
  if (section.numeric == 0 && section.categories.empty())
    return refuse("wide_deep.numeric", "0 and model.wide_deep.categories is []",
                  "at least one column: set them, or describe the columns of csv files in [data.columns]");
  for (const auto* sizes : {&section.categories, &section.hidden})
    if (std::find(sizes->begin(), sizes->end(), 0U) != sizes->end())
      return fail(ErrorCode::kConfig, std::string("model.wide_deep.") +
                                          (sizes == &section.categories ? "categories" : "hidden") +
                                          " has a size of 0; expected at least 1");
  ModelSpec spec;
  // A linear model may begin at 0. That of the wide part does, so at first only the deep part shapes the output.
  if (section.numeric > 0) add_variable(spec, "wide/numeric/weight", {section.numeric, section.outputs}, kZeros);
  for (std::size_t i = 0; i < section.categories.size(); ++i)
    add_variable(spec, "wide/category" + std::to_string(i) + "/weight", {section.categories[i], section.outputs},
                 kZeros);
  add_variable(spec, "wide/bias", {section.outputs}, kZeros);
  for (std::size_t i = 0; i < section.categories.size(); ++i)
    add_variable(spec, "deep/category" + std::to_string(i) + "/weight", {section.categories[i], section.embedding},
                 normal(1.0 / std::sqrt(static_cast<double>(section.embedding))));
  std::uint64_t in = section.numeric + section.categories.size() * std::uint64_t{section.embedding};
  std::vector<std::uint32_t> sizes = section.hidden;
  sizes.push_back(section.outputs);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    add_dense(spec, "deep/layer" + std::to_string(i), in, sizes[i], kGlorot);
    in = sizes[i];
  }
  if (section.numeric > 0)
    spec.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {section.numeric}});
  if (!section.categories.empty())
    spec.columns.push_back({.name = "categories",
                            .dtype = DType::kInt64,
                            .shape = {section.categories.size()},
                            .limit = *std::max_element(section.categories.begin(), section.categories.end())});
  add_wanted(spec, model, section.outputs);
  return spec;
}

}  // namespace disttrain::builtin
