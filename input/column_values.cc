#include "input/column_values.h"

#include <algorithm>
#include <cmath>

#include "common/printable.h"
#include "input/column_text.h"
#include "input/number_text.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

// `missing` is from missing_numbers().
bool is_no_number(float number, const std::vector<float>& missing) {
  return std::isnan(number) || std::binary_search(missing.begin(), missing.end(), number);
}

}  // namespace

bool has_values(const ColumnSection& column) {
  return column.kind != ColumnKind::kIgnore && column.cross.empty();
}

std::string key_of(const ColumnSection& column) {
  return "data.columns." + column.name;
}

const std::string& name_in_files(const ColumnSection& column) {
  return column.from.empty() ? column.name : column.from;
}

std::uint64_t value_count(const ColumnSection& column) {
  std::uint64_t count = 1;
  for (const std::uint32_t size : column.shape) count *= size;
  return count;
}

Status check_lengths(const ColumnSection& section, const TableColumn& from, std::uint64_t expected,
                     const PlaceOf& place_of, const std::vector<float>& missing) {
  const auto bad = [&](std::uint64_t record, std::uint64_t found) {
    const std::string values = found == 0 ? "no value" : found == 1 ? "1 value" : std::to_string(found) + " values";
    return fail(ErrorCode::kData,
                place_of(record) + ": " + values + " in column '" + name_in_files(section) + "', expected " +
                    (expected == 1 ? "one value" : std::to_string(expected) + " values") + ": correct the record" +
                    (found == 0 ? ", or " + key_of(section) + ".from if it has another name there"
                     : section.kind == ColumnKind::kNumeric ? " or " + key_of(section) + ".shape"
                                                            : ""));
  };
  if (from.lengths.empty() && expected == 1) return {};
  const bool may_lack = section.missing.has_value() || section.kind == ColumnKind::kCategory;
  const std::uint64_t records = from.lengths.empty() ? values_in(from) : from.lengths.size();
  std::uint64_t first = 0;  // of the record's values
  for (std::uint64_t i = 0; i < records; ++i) {
    const std::uint64_t length = from.lengths.empty() ? 1 : from.lengths[i];
    const bool has_none = length == 0 || (length == 1 && expected > 1 && from.kind == ValueKind::kFloat &&
                                          is_no_number(from.floats[first], missing));
    if (length != expected && !(has_none && may_lack)) return bad(i, has_none ? 0 : length);
    first += length;
  }
  return {};
}

std::vector<float> missing_numbers(const std::vector<std::string>& missing) {
  std::vector<float> numbers;
  for (const std::string& word : missing)
    if (const std::optional<float> number = float_or_infinity_in(word)) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool has_a_value(const ColumnSection& section, const TableColumn& from, const std::vector<std::string>& missing) {
  if (from.kind == ValueKind::kFloat) {
    const std::vector<float> numbers = missing_numbers(missing);
    return std::any_of(from.floats.begin(), from.floats.end(),
                       [&numbers](float number) { return !is_no_number(number, numbers); });
  }
  if (section.kind != ColumnKind::kCategory) return values_in(from) > 0;
  return std::any_of(from.bytes.begin(), from.bytes.end(),
                     [&missing](std::string_view text) { return !word_of(text, missing).empty(); });
}

Result<float> number_of(const ColumnSection& section, float number, std::uint64_t record, const PlaceOf& place_of) {
  if (std::isfinite(number)) return number;
  if (std::isinf(number))
    return fail(ErrorCode::kData, place_of(record) + ": " + (number > 0 ? "infinity" : "-infinity") + " in column '" +
                                      name_in_files(section) +
                                      "', or a number beyond the range of float32, expected a finite number: correct "
                                      "the record");
  if (section.missing) return static_cast<float>(*section.missing);
  return fail(ErrorCode::kData, place_of(record) + ": no value in column '" + name_in_files(section) +
                                    "', expected a number: correct the record, or set " + key_of(section) + ".missing");
}

Status check_word(const ColumnSection& section, std::string_view word, const std::string& place) {
  const std::optional<std::string> wrong = wrong_bytes(word);
  if (!wrong) return {};
  return fail(ErrorCode::kData,
              place + ": " + printable(shown_text(word)) + " in column '" + name_in_files(section) + "' " + *wrong);
}

tl::unexpected<Error> no_values(const ColumnSection& section) {
  return fail(ErrorCode::kData, "no record of the training set has a value in column '" + name_in_files(section) +
                                    "': correct " + key_of(section) +
                                    ".from if the files call it otherwise, or leave the column out");
}

tl::unexpected<Error> no_label(const ColumnSection& column, std::string_view text,
                               const std::vector<std::string>& missing, const std::string& place) {
  const std::string what = place + ": no label in column '" + name_in_files(column) + "', ";
  const std::string_view word = label_of(text, column.strip, {});
  if (word.empty()) return fail(ErrorCode::kData, what + "expected a word or a number: correct the record");
  const std::string_view listed = is_missing(word, missing) ? word : without_blanks(text);
  return fail(ErrorCode::kData, what + "because data.missing has its text " + printable(shown_text(listed)) +
                                    ", expected another word or number: correct data.missing or the record");
}

}  // namespace disttrain::input
