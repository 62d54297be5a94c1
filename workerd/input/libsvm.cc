#include "workerd/input/libsvm.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "common/check.h"
#include "workerd/input/number_text.h"

namespace disttrain::input {

namespace {

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Takes the next word of the line; "" at its end.
std::string_view take_word(std::string_view& line) {
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

// Appends the label. Returns what is wrong with it.
std::optional<std::string> take_label(std::string_view word, TableColumn& column) {
  // A file of another format may have a word where the label should be, and nothing where the features should be.
  if (word.find(',') != std::string_view::npos)
    return expected(word, "label", "one label, because a record can't have several (is data.format right?)");
  if (std::any_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return expected(word, "label", "a number or a word (is data.format right?)");
  switch (column.kind) {
    case ValueKind::kFloat: {
      const std::optional<float> number = float_in(word);
      if (!number) return expected(word, "label", "a finite number");
      column.floats.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kInteger: {
      const std::optional<std::int64_t> number = integer_in(word);
      if (!number) return expected(word, "label", "a whole number");
      column.integers.push_back(*number);
      return std::nullopt;
    }
    case ValueKind::kBytes:
      column.bytes.push_back(word);
      return std::nullopt;
  }
  return std::nullopt;
}

// Writes the values of the rest of a line to `out`, which is all 0. Returns what is wrong with the line.
std::optional<std::string> take_features(std::string_view line, const LibsvmShape& shape, std::span<float> out) {
  const std::uint64_t base = shape.one_based ? 1 : 0;
  std::uint64_t next = base;  // the smallest index that may follow
  for (;;) {
    const std::string_view word = take_word(line);
    if (word.empty()) return std::nullopt;
    std::uint64_t index = 0;
    const auto [colon, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc() || colon == word.data() + word.size() || *colon != ':') {
      if (word.starts_with("qid:"))
        return expected(word, "features", "INDEX:VALUE, because disttrain doesn't train on queries for ranking");
      return expected(word, "features", "INDEX:VALUE");
    }
    if (index < base || index - base >= out.size())
      return expected("index " + std::to_string(index), "features",
                      std::to_string(base) + " to " + std::to_string(out.size() - 1 + base));
    if (index < next)
      return expected("index " + std::to_string(index) + " behind index " + std::to_string(next - 1), "features",
                      "indices that grow");
    const std::string_view text = word.substr(static_cast<std::size_t>(colon - word.data()) + 1);
    const std::optional<float> value = float_in(text);
    if (!value) return expected(text, "features", "a finite number");
    out[index - base] = *value;
    next = index + 1;
  }
}

}  // namespace

Status decode_libsvm(const RecordBlock& block, std::span<const RecordPlace> records,
                     const std::vector<WantedColumn>& wanted, const LibsvmShape& shape, Table& table) {
  DISTTRAIN_CHECK(shape.width >= 1 && shape.width <= kMaxLibsvmWidth);
  for (const WantedColumn& column : wanted) {
    if (column.name == "label" || (column.name == "features" && column.kind == ValueKind::kFloat)) continue;
    return fail(ErrorCode::kConfig, "column '" + column.name + "' of a libsvm file" +
                                        (column.name == "features" ? " can't be a category" : " doesn't exist") +
                                        ", expected a label 'label' and numbers 'features': correct [data.columns]");
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
    const std::string_view label = take_word(line);
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      TableColumn& column = table.columns[c];
      const std::optional<std::string> problem =
          wanted[c].name == "label"
              ? take_label(label, column)
              : take_features(line, shape, std::span(column.floats).subspan(r * shape.width, shape.width));
      if (problem) return fail(ErrorCode::kData, place_of(block, r, records[r].begin) + ": " + *problem);
    }
  }
  return {};
}

}  // namespace disttrain::input
