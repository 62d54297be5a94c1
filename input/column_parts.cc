#include "input/column_parts.h"

#include "common/config/columns.h"

namespace disttrain::input {

Parts parts_of(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  Parts parts;
  std::uint64_t inputs = 0;
  for (const ColumnSection& column : with_vocabularies(columns, fitted)) {
    if (column.kind == ColumnKind::kIgnore || is_sequence(column)) continue;
    ColumnPart part{.name = column.name, .shape = {}};
    if (is_category(column)) {
      part.first = parts.categories.size();
      part.limit = category_size(column, 1);
      parts.categories.push_back(std::move(part));
    } else if (is_number(column) || is_image(column) || is_one_hot(column)) {
      part.first = inputs;
      part.shape.assign(column.shape.begin(), column.shape.end());
      if (is_one_hot(column)) part.shape = {category_size(column, 1)};
      inputs += element_count(part);
      parts.inputs.push_back(std::move(part));
    } else if (is_weight(column)) {
      parts.weights.push_back(std::move(part));
    } else {
      parts.labels.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace disttrain::input
