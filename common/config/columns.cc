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

bool takes_vocabulary(const JobConfig& job) {
  const bool has_tokens = std::any_of(job.data.columns.begin(), job.data.columns.end(), is_tokens);
  return job.model.builtin == "transformer" && job.model.transformer.vocabulary == 0 &&
         (has_tokens || !job.data.tokenizer.empty());
}

bool is_category(const ColumnSection& column) {
  return column.kind == ColumnKind::kCategory || (column.kind == ColumnKind::kNumeric && !column.boundaries.empty());
}

std::vector<std::uint32_t> known_category_sizes(const std::vector<ColumnSection>& columns,
                                                std::uint32_t size_in_files) {
  std::vector<std::uint32_t> sizes;
  for (const ColumnSection& column : columns) {
    if (!is_category(column)) continue;
    if (column.kind == ColumnKind::kNumeric)
      sizes.push_back(static_cast<std::uint32_t>(column.boundaries.size()) + 1);
    else if (column.hash > 0)
      sizes.push_back(column.hash);
    else
      sizes.push_back(column.vocabulary.empty() ? size_in_files
                                                : static_cast<std::uint32_t>(column.vocabulary.size()) + 1);
  }
  return sizes;
}

void take_column_sizes(const std::vector<ColumnSection>& columns, const std::vector<std::uint32_t>& categories,
                       ModelSection& model) {
  if (model.builtin != "wide_deep") return;
  if (model.wide_deep.numeric == 0)
    for (const ColumnSection& column : columns) {
      if (!is_number(column)) continue;
      std::uint64_t values = 1;
      for (const std::uint32_t size : column.shape) values *= size;
      model.wide_deep.numeric += static_cast<std::uint32_t>(values);
    }
  if (model.wide_deep.categories.empty()) model.wide_deep.categories = categories;
}

}  // namespace disttrain
