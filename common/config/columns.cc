#include "common/config/columns.h"

#include <algorithm>

namespace disttrain {

bool is_number(const ColumnSection& column) {
  return column.kind == ColumnKind::kNumeric && column.boundaries.empty();
}

bool is_image(const ColumnSection& column) {
  return column.kind == ColumnKind::kImage;
}

bool is_tokens(const ColumnSection& column) {
  return column.kind == ColumnKind::kTokens;
}

bool is_bytes(const ColumnSection& column) {
  return column.kind == ColumnKind::kBytes;
}

bool is_sequence(const ColumnSection& column) {
  return is_tokens(column) || is_bytes(column);
}

bool is_weight(const ColumnSection& column) {
  return column.kind == ColumnKind::kWeight;
}

namespace {

// Of a builtin model with a loss of its choice; 0 for any other model.
std::uint64_t outputs_of(const ModelSection& model) {
  if (model.builtin == "linear" || model.builtin == "mlp") return model.layers.empty() ? 0 : model.layers.back();
  if (model.builtin == "resnet") return model.resnet.outputs;
  if (model.builtin == "wide_deep") return model.wide_deep.outputs;
  if (model.builtin == "cnn") return 10;  // its sizes are fixed (common/builtin/builtin.h)
  return model.builtin == "matrix_factorization" ? 1 : 0;
}

}  // namespace

bool takes_target(const ModelSection& model) {
  return model.loss == Loss::kMse && outputs_of(model) == 1;
}

std::uint64_t sigmoid_outputs(const ModelSection& model) {
  return model.loss == Loss::kSigmoidCrossEntropy ? outputs_of(model) : 0;
}

bool takes_vocabulary(const JobConfig& job) {
  const bool has_tokens = std::any_of(job.data.columns.begin(), job.data.columns.end(), is_tokens);
  return job.model.builtin == "transformer" && job.model.transformer.vocabulary == 0 &&
         (has_tokens || !job.data.tokenizer.empty());
}

namespace {

bool has_categories(const ColumnSection& column) {
  return column.kind == ColumnKind::kCategory || (column.kind == ColumnKind::kNumeric && !column.boundaries.empty());
}

}  // namespace

bool is_category(const ColumnSection& column) {
  return has_categories(column) && !column.one_hot;
}

bool is_one_hot(const ColumnSection& column) {
  return has_categories(column) && column.one_hot;
}

std::uint32_t category_size(const ColumnSection& column, std::uint32_t size_in_files) {
  if (column.kind == ColumnKind::kNumeric) return static_cast<std::uint32_t>(column.boundaries.size()) + 1;
  if (column.hash > 0) return column.hash;
  return column.vocabulary.empty() ? size_in_files : static_cast<std::uint32_t>(column.vocabulary.size()) + 1;
}

std::uint64_t input_count(const ColumnSection& column, std::uint32_t size_in_files) {
  if (is_one_hot(column)) return category_size(column, size_in_files);
  if (!is_number(column) && !is_image(column)) return 0;
  std::uint64_t values = 1;
  for (const std::uint32_t size : column.shape) values *= size;
  return values;
}

std::vector<std::uint32_t> category_sizes(const std::vector<ColumnSection>& columns, std::uint32_t size_in_files) {
  std::vector<std::uint32_t> sizes;
  for (const ColumnSection& column : columns)
    if (is_category(column)) sizes.push_back(category_size(column, size_in_files));
  return sizes;
}

bool has_size_in_files(const std::vector<ColumnSection>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnSection& column) {
    return has_categories(column) && category_size(column, 0) == 0;
  });
}

void take_column_sizes(const std::vector<ColumnSection>& columns, std::uint32_t size_in_files, ModelSection& model) {
  if (model.builtin != "wide_deep") return;
  if (model.wide_deep.numeric == 0)
    for (const ColumnSection& column : columns)
      model.wide_deep.numeric += static_cast<std::uint32_t>(input_count(column, size_in_files));
  if (model.wide_deep.categories.empty()) model.wide_deep.categories = category_sizes(columns, size_in_files);
}

}  // namespace disttrain
