#include "common/checkpoint/kept_csv.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "common/bounds.h"
#include "common/printable.h"

namespace disttrain::checkpoint {

namespace {

std::string quoted_word(std::string_view word) {
  constexpr std::size_t kMost = 40;
  return "'" + printable(cut_text(word, kMost)) + (word.size() > kMost ? "...'" : "'");
}

// `what` names the words, whose numbers begin with `first`.
std::optional<std::string> differing_word(const std::string& what, std::size_t first,
                                          const std::vector<std::string>& kept, const std::vector<std::string>& found) {
  for (std::size_t i = 0; i < std::max(kept.size(), found.size()); ++i) {
    const std::string word = what + " " + std::to_string(first + i);
    if (i >= found.size())
      return word + " was " + quoted_word(kept[i]) + ", and there are only " + std::to_string(i) + " now";
    if (i >= kept.size())
      return word + " is " + quoted_word(found[i]) + " now, and there were only " + std::to_string(i);
    if (kept[i] != found[i]) return word + " was " + quoted_word(kept[i]) + " and is " + quoted_word(found[i]) + " now";
  }
  return std::nullopt;
}

}  // namespace

std::string encode_csv(const KeptCsv& csv) {
  std::size_t bytes = 0;
  for (const std::vector<std::string>* words : {&csv.labels, &csv.header})
    for (const std::string& word : *words) bytes += word.size() + 1;
  if (bytes > kMaxKeptColumnsBytes) return "";
  std::string encoded = encode_columns({{.name = "", .words = csv.labels}, {.name = "", .words = csv.header}});
  return encoded.size() > kMaxKeptColumnsBytes ? "" : encoded;
}

std::optional<KeptCsv> csv_of(const std::vector<KeptColumn>& columns) {
  if (columns.size() != 2 || !columns[0].name.empty() || !columns[1].name.empty()) return std::nullopt;
  return KeptCsv{columns[0].words, columns[1].words};
}

std::optional<std::string> difference(const KeptCsv& kept, const KeptCsv& found) {
  if (kept.labels.empty() != found.labels.empty())
    return found.labels.empty() ? "the labels were words and are numbers now"
                                : "the labels were numbers and are words now";
  if (std::optional<std::string> label = differing_word("label", 0, kept.labels, found.labels)) return label;
  if (kept.header.empty() || found.header.empty()) return std::nullopt;
  std::vector<std::string> header = found.header;
  if (header.size() == kept.header.size()) header.back() = kept.header.back();  // the label
  return differing_word("the header's column", 1, kept.header, header);
}

}  // namespace disttrain::checkpoint
