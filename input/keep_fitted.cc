#include "input/keep_fitted.h"

#include <cstdio>
#include <utility>

#include "common/bounds.h"
#include "common/checkpoint/kept_csv.h"
#include "common/config/columns.h"
#include "input/column_values.h"
#include "input/encode_tokens.h"

namespace disttrain::input {

namespace {

std::vector<std::string> words_of(const FittedColumn& column) {
  if (column.tokenizer == nullptr) return column.vocabulary;
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(column.tokenizer_hash));
  return {hash};
}

}  // namespace

std::string encode_fitted(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  std::vector<checkpoint::KeptColumn> kept;
  std::size_t word_bytes = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const FittedColumn& column = fitted.columns[i];
    for (const std::string& word : column.vocabulary) word_bytes += word.size() + 1;
    if (word_bytes > kMaxKeptColumnsBytes) return "";
    kept.push_back({.name = columns[i].name,
                    .words = words_of(column),
                    .mean = column.mean,
                    .deviation = column.deviation,
                    .are_classes = column.label.are_classes(),
                    .are_whole = column.label.are_whole,
                    .smallest = column.label.smallest,
                    .largest = column.label.largest});
  }
  std::string bytes = checkpoint::encode_columns(kept);
  return bytes.size() > kMaxKeptColumnsBytes ? "" : bytes;
}

std::string encode_csv_names(const Dataset& training) {
  return checkpoint::encode_csv({.labels = training.label_names(), .header = training.header()});
}

Result<std::shared_ptr<const FittedColumns>> fitted_from(const std::vector<ColumnSection>& columns,
                                                         const std::vector<checkpoint::KeptColumn>& kept) {
  if (kept.size() != columns.size()) return nullptr;
  auto fitted = std::make_shared<FittedColumns>();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSection& section = columns[i];
    if (kept[i].name != section.name) return nullptr;
    FittedColumn& column = fitted->columns.emplace_back();
    if (is_sequence(section)) continue;
    column.vocabulary = section.vocabulary.empty() ? kept[i].words : section.vocabulary;
    column.mean = section.mean.value_or(kept[i].mean);
    column.deviation = section.deviation.value_or(kept[i].deviation);
    column.label = {kept[i].are_whole, kept[i].smallest, kept[i].largest};
  }
  if (Status ok = load_tokenizers(columns, *fitted); !ok) return tl::unexpected(std::move(ok.error()));
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (is_tokens(columns[i]) && words_of(fitted->columns[i]) != kept[i].words)
      return fail(ErrorCode::kConfig, columns[i].tokenizer +
                                          ": isn't the tokenizer with which the checkpoint was trained: restore that "
                                          "file, or name it by " +
                                          key_of(columns[i]) + ".tokenizer");
  return fitted;
}

}  // namespace disttrain::input
