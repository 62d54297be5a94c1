#include "workerd/input/keep_fitted.h"

#include "common/bounds.h"

namespace disttrain::input {

std::string encode_fitted(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  std::vector<checkpoint::KeptColumn> kept;
  std::size_t word_bytes = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const FittedColumn& column = fitted.columns[i];
    for (const std::string& word : column.vocabulary) word_bytes += word.size() + 1;
    if (word_bytes > kMaxKeptColumnsBytes) return "";
    kept.push_back({.name = columns[i].name,
                    .words = column.vocabulary,
                    .mean = column.mean,
                    .deviation = column.deviation,
                    .are_classes = column.label.are_classes,
                    .smallest = column.label.smallest,
                    .largest = column.label.largest});
  }
  std::string bytes = checkpoint::encode_columns(kept);
  return bytes.size() > kMaxKeptColumnsBytes ? "" : bytes;
}

std::shared_ptr<const FittedColumns> fitted_from(const std::vector<ColumnSection>& columns,
                                                 const std::vector<checkpoint::KeptColumn>& kept) {
  if (kept.size() != columns.size()) return nullptr;
  auto fitted = std::make_shared<FittedColumns>();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSection& section = columns[i];
    if (kept[i].name != section.name) return nullptr;
    FittedColumn& column = fitted->columns.emplace_back();
    column.vocabulary = section.vocabulary.empty() ? kept[i].words : section.vocabulary;
    column.mean = section.mean.value_or(kept[i].mean);
    column.deviation = section.deviation.value_or(kept[i].deviation);
    column.label = {kept[i].are_classes, kept[i].smallest, kept[i].largest};
  }
  return fitted;
}

}  // namespace disttrain::input
