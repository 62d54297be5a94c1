#include "input/libsvm.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "common/check.h"
#include "input/column_text.h"
#include "input/lines.h"
#include "input/number_text.h"

namespace disttrain::input {

namespace {

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Takes the next word of the line; "" at its end.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && is_separator(line.front())) line.remove_prefix(1);
  std::size_t size = 0;
  while (size < line.size() && !is_separator(line[size])) ++size;
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size);
  return word;
}

std::string expected(const std::string& found, const std::string& column, const std::string& what) {
  return found + " in column '" + column + "', expected " + what + ": correct the line";
}

std::string expected(std::string_view found, const std::string& column, const std::string& what) {
  return expected(shown_text(found), column, what);
}

// Appends the label or the weight. Returns what is wrong with it.
std::optional<std::string> take_word(std::string_view word, const WantedColumn& wanted, TableColumn& column) {
  // A file of another format may have a word where the label should be, and nothing where the features should be.
  if (word.find(',') != std::string_view::npos)
    return expected(word, wanted.name, "one value, because a record can't have several (is data.format right?)");
  if (std::any_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return expected(word, wanted.name, "a number or a word (is data.format right?)");
  switch (column.kind) {
    case ValueKind::kFloat: {
      const std::optional<float> number = number_of_text(word, wanted.missing);
      if (!number) return wrong_number(word, wanted.name);
      column.floats.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kInteger: {
      const std::optional<std::int64_t> number = integer_in(word);
      if (!number) return expected(word, wanted.name, "a whole number");
      column.integers.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kBytes:
      column.bytes.push_back(word);
      return std::nullopt;
  }
  return std::nullopt;
}

// The index of INDEX:VALUE. Nothing if the word isn't of this form.
std::optional<std::uint64_t> index_in(std::string_view word) {
  std::uint64_t index = 0;
  const auto [colon, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool is_followed = colon != word.data() + word.size() && *colon == ':';
  return error == std::errc() && is_followed ? std::optional(index) : std::nullopt;
}

// What is before the features of a line.
struct Head {
  std::string_view label;
  std::string_view weight;
};

// Whether `word`, which has a colon, can be the first feature of the line `rest`.
bool may_be_feature(std::string_view word, std::string_view rest, const LibsvmShape& shape) {
  const std::optional<std::uint64_t> index = index_in(word);
  const std::uint64_t base = shape.one_based ? 1 : 0;
  if (!index || *index < base || *index - base >= shape.width) return false;
  const std::string_view second = next_word(rest);
  return second.empty() || index_in(second).value_or(0) > *index;
}

// Takes the label and its weight off the line. Returns what is wrong with them.
std::optional<std::string> take_head(std::string_view& line, const LibsvmShape& shape, Head& head) {
  std::string_view rest = line;
  const std::string_view word = next_word(rest);
  const std::size_t colon = word.find(':');
  head = {word.substr(0, colon), colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1)};
  if (colon != std::string_view::npos) {
    if (shape.may_lack_label && !shape.has_weights) return std::nullopt;
    if (!shape.has_weights)
      return expected(
          word, "label",
          "a label without a colon; if it is LABEL:WEIGHT, add a column \"weight\" of the kind \"weight\", and "
          "if it is the first feature, the line has no label");
    if (shape.may_lack_label && may_be_feature(word, rest, shape))
      return expected(word, "label",
                      "a label before the features, because it can be LABEL:WEIGHT or a feature; any number will do");
  }
  line = rest;
  return std::nullopt;
}

// Writes the values of the rest of a line to `out`, which is all 0. Returns what is wrong with the line.
std::optional<std::string> take_features(std::string_view line, const LibsvmShape& shape,
                                         const std::vector<std::string>& missing, std::span<float> out) {
  const std::uint64_t base = shape.one_based ? 1 : 0;
  std::uint64_t next = base;  // the smallest index that may follow
  for (;;) {
    const std::string_view word = next_word(line);
    if (word.empty()) return std::nullopt;
    const std::optional<std::uint64_t> found = index_in(word);
    if (!found) {
      if (word.starts_with("qid:"))
        return expected(word, "features", "INDEX:VALUE, because disttrain doesn't train on queries for ranking");
      return expected(word, "features", "INDEX:VALUE");
    }
    const std::uint64_t index = *found;
    if (index < base || index - base >= out.size())
      return expected("index " + std::to_string(index), "features",
                      std::to_string(base) + " to " + std::to_string(out.size() - 1 + base) +
                          ", as the column's shape and zero_based say");
    if (index < next)
      return expected("index " + std::to_string(index) + " behind index " + std::to_string(next - 1), "features",
                      "indices that grow");
    const std::string_view text = word.substr(word.find(':') + 1);
    if (text.empty()) return expected(word, "features", "INDEX:VALUE");
    const std::optional<float> value = number_of_text(text, missing);
    if (!value)
      return shown_text(text) +
             " in column 'features', expected a finite number: correct the line, or add the word to data.missing";
    out[index - base] = *value;
    next = index + 1;
  }
}

}  // namespace

Result<std::size_t> find_libsvm_lines(const RecordBlock& block, std::vector<RecordPlace>& records) {
  Result<std::size_t> covered = find_lines(block, records);
  std::erase_if(records, [&block](const RecordPlace& place) {
    std::string_view line = text_at(block, place);
    return next_word(line).starts_with('#');
  });
  return covered;
}

Status decode_libsvm(const RecordBlock& block, std::span<const RecordPlace> records,
                     const std::vector<WantedColumn>& wanted, const LibsvmShape& shape, Table& table) {
  DISTTRAIN_CHECK(shape.width >= 1 && shape.width <= kMaxLibsvmWidth);
  for (const WantedColumn& column : wanted) {
    if (column.name == "label" || column.name == "weight") continue;
    if (column.name == "features" && column.kind == ValueKind::kFloat) continue;
    return fail(ErrorCode::kConfig,
                "column '" + column.name + "' of a libsvm file" +
                    (column.name == "features" ? " can't be a category" : " doesn't exist") +
                    ", expected a label 'label', numbers 'features' and a weight 'weight': correct [data.columns]");
  }
  start_table(wanted, table);
  table.records = records.size();
  for (std::size_t c = 0; c < wanted.size(); ++c) {
    if (wanted[c].name != "features") continue;
    table.columns[c].floats.resize(records.size() * shape.width);
    if (shape.width != 1) table.columns[c].lengths.resize(records.size(), shape.width);
  }
  for (std::size_t r = 0; r < records.size(); ++r) {
    std::string_view line = text_at(block, records[r]);
    line = line.substr(0, line.find('#'));
    Head head;
    std::optional<std::string> problem = take_head(line, shape, head);
    for (std::size_t c = 0; c < wanted.size() && !problem; ++c) {
      TableColumn& column = table.columns[c];
      if (wanted[c].name == "features")
        problem = take_features(line, shape, wanted[c].missing,
                                std::span(column.floats).subspan(r * shape.width, shape.width));
      else
        problem = take_word(wanted[c].name == "label" ? head.label : head.weight, wanted[c], column);
    }
    if (problem) return fail(ErrorCode::kData, place_of(block, r, records[r].begin) + ": " + *problem);
  }
  return {};
}

}  // namespace disttrain::input
