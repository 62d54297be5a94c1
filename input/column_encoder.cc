#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "common/check.h"
#include "common/config/columns.h"
#include "input/column_values.h"
#include "input/columns.h"
#include "input/encode_images.h"
#include "input/encode_tokens.h"
#include "input/rows.h"

namespace disttrain::input {

std::vector<WantedColumn> wanted_columns(const std::vector<ColumnSection>& columns,
                                         const std::vector<std::string>& missing) {
  std::vector<WantedColumn> wanted;
  for (const ColumnSection& column : columns)
    if (has_values(column))
      wanted.push_back({.name = name_in_files(column),
                        .kind = column.kind == ColumnKind::kNumeric || is_weight(column) ? ValueKind::kFloat
                                : is_tokens(column) && column.tokenizer.empty()          ? ValueKind::kInteger
                                                                                         : ValueKind::kBytes,
                        .missing = missing,
                        .shape = column.kind == ColumnKind::kNumeric ? column.shape : std::vector<std::uint32_t>()});
  return wanted;
}

ColumnEncoder::ColumnEncoder(const std::vector<ColumnSection>& columns, const FittedColumns& fitted,
                             std::vector<std::string> missing, const std::string& target_taker,
                             bool takes_probabilities)
    : missing_(std::move(missing)),
      missing_numbers_(missing_numbers(missing_)),
      takes_probabilities_(takes_probabilities) {
  std::map<std::string, std::uint64_t> places;  // of each category
  std::size_t from = 0;
  const std::vector<ColumnSection> known = with_vocabularies(columns, fitted);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSection& section = columns[i];
    if (section.kind == ColumnKind::kIgnore) continue;
    Column column{.section = &section,
                  .fitted = &fitted.columns[i],
                  .from = from,
                  .elements = value_count(section),
                  .numbers = {},
                  .cross = {},
                  .index = columns_.size()};
    if (has_values(section)) ++from;
    // A category's word 0 has the number 1, a label's has 0.
    std::int32_t number = section.kind == ColumnKind::kCategory ? 1 : 0;
    for (const std::string& word : fitted.columns[i].vocabulary) column.numbers.emplace(word, number++);
    if (is_number(section) || is_image(section)) {
      column.to = inputs_;
      inputs_ += column.elements;
      has_pixels_ = has_pixels_ || is_image(section);
    } else if (is_one_hot(section)) {
      column.to = inputs_;
      column.size = category_size(known[i], 1);
      inputs_ += column.size;
    } else if (is_category(section)) {
      column.to = categories_++;
      places.emplace(section.name, column.to);
    } else if (is_sequence(section)) {
      column.to = token_columns_++;
      add_token_arrays(column);
    } else if (is_weight(section)) {
      has_weights_ = true;
    } else {
      has_labels_ = true;
      const bool are_whole = column.fitted->label.are_whole && target_taker.empty();
      has_whole_labels_ = section.normalise == Normalise::kNone && (!column.numbers.empty() || are_whole);
    }
    columns_.push_back(std::move(column));
  }
  // The columns of a cross may come after it.
  for (Column& column : columns_)
    for (const std::string& name : column.section->cross) column.cross.push_back(places.at(name));
}

std::vector<UnknownWords> unknown_words(const std::vector<std::string>& names,
                                        const std::vector<std::uint64_t>& numbers) {
  std::vector<UnknownWords> unknown;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!names[i].empty() && numbers[i] > 0) unknown.push_back({names[i], numbers[i]});
  return unknown;
}

void ColumnEncoder::add_token_arrays(const Column& column) {
  const ColumnSection& section = *column.section;
  TokenArray array{.name = section.name,
                   .column = column.to,
                   .dtype = DType::kInt32,
                   .length = most_tokens(section),
                   .pad = static_cast<std::int32_t>(section.pad),
                   .largest = token_limit(section, column.fitted->tokenizer.get()) - 1,
                   .is_ragged = section.pad_to == PadTo::kLongest};
  if (is_bytes(section)) array.dtype = section.length > 0 ? DType::kUint8 : DType::kBytes;
  if (array.dtype == DType::kBytes) array.is_ragged = true;
  tokens_.push_back(array);
  if (!section.with_length) return;
  array.name += "_length";
  array.dtype = DType::kInt32;
  array.has_lengths = true;
  array.is_ragged = false;
  array.largest = section.length;
  tokens_.push_back(std::move(array));
}

std::uint64_t ColumnEncoder::record_bytes() const {
  return (inputs_ + categories_ + (has_weights_ ? 1 : 0)) * sizeof(float) + (has_labels_ ? sizeof(std::int64_t) : 0);
}

std::uint64_t ColumnEncoder::most_bytes(std::uint64_t records, std::uint64_t content_bytes) const {
  std::uint64_t bytes = records * record_bytes();
  for (const TokenArray& array : tokens_) {
    if (array.has_lengths) continue;
    const std::uint64_t most = records * array.length;
    bytes += records * sizeof(std::uint64_t);
    bytes += array.dtype == DType::kInt32 ? most * sizeof(std::int32_t) : std::min(most, content_bytes);
  }
  return bytes;
}

Status ColumnEncoder::encode(const Table& table, const PlaceOf& place_of, EncodedRows& rows,
                             const Images& images) const {
  const std::uint64_t old = rows.records;
  add_rows(table.records, rows);
  const RowsOut to = rows_at(rows, old);
  if (Status ok = encode_columns(table, 0, table.columns.size(), place_of, to, images); !ok) return ok;
  encode_crosses(table.records, to);
  return {};
}

void ColumnEncoder::add_rows(std::uint64_t records, EncodedRows& rows) const {
  rows.records += records;
  rows.inputs.resize(has_pixels_ ? 0 : rows.records * inputs_);
  rows.pixels.resize(has_pixels_ ? rows.records * inputs_ : 0);
  rows.categories.resize(rows.records * categories_);
  rows.tokens.resize(token_columns_);
  rows.classes.resize(has_labels_ && has_whole_labels_ ? rows.records : 0);
  rows.targets.resize(has_whole_labels_ ? 0 : rows.records);
  rows.weights.resize(has_weights_ ? rows.records : 0);
}

std::vector<std::string> ColumnEncoder::unknown_names() const {
  std::vector<std::string> names;
  for (const Column& column : columns_)
    names.push_back(column.section->kind == ColumnKind::kCategory && !column.numbers.empty() ? column.section->name
                                                                                             : "");
  return names;
}

void ColumnEncoder::count_unknown(const float* inputs, const std::int32_t* categories,
                                  std::span<std::uint64_t> numbers) const {
  for (const Column& column : columns_) {
    if (column.section->kind != ColumnKind::kCategory || column.numbers.empty()) continue;
    const bool is_unknown = is_one_hot(*column.section) ? inputs[column.to] == 1.0F : categories[column.to] == 0;
    numbers[column.index] += is_unknown ? 1 : 0;
  }
}

RowsOut ColumnEncoder::rows_at(EncodedRows& rows, std::uint64_t first) const {
  return {.inputs = rows.inputs.data() + (has_pixels_ ? 0 : first * inputs_),
          .pixels = rows.pixels.data() + (has_pixels_ ? first * inputs_ : 0),
          .categories = rows.categories.data() + first * categories_,
          .classes = rows.classes.data() + (has_labels_ && has_whole_labels_ ? first : 0),
          .targets = rows.targets.data() + (has_whole_labels_ ? 0 : first),
          .weights = rows.weights.data() + (has_weights_ ? first : 0),
          .tokens = rows.tokens};
}

Status ColumnEncoder::encode_columns(const Table& table, std::size_t begin, std::size_t end, const PlaceOf& place_of,
                                     const RowsOut& to, const Images& images) const {
  for (const Column& column : columns_) {
    if (!column.cross.empty() || column.from < begin || column.from >= end) continue;
    Status ok;
    if (is_number(*column.section))
      ok = encode_numbers(column, table, place_of, to.inputs + column.to);
    else if (is_image(*column.section))
      ok = encode_pixels(column, table, place_of, images, to.pixels);
    else if (is_sequence(*column.section))
      ok = encode_tokens(*column.section, column.fitted->tokenizer.get(), table.columns[column.from], table.records,
                         place_of, to.tokens[column.to]);
    else if (column.section->kind == ColumnKind::kLabel)
      ok = encode_labels(column, table, place_of, to);
    else if (is_weight(*column.section))
      ok = encode_weights(column, table, place_of, to.weights);
    else if (is_one_hot(*column.section))
      ok = encode_one_hot(column, table, place_of, to);
    else
      ok = encode_categories(column, table, place_of, to);
    if (!ok) return ok;
  }
  return {};
}

void ColumnEncoder::encode_crosses(std::uint64_t records, const RowsOut& to) const {
  for (const Column& column : columns_)
    if (!column.cross.empty()) encode_cross(column, records, to.categories);
}

Status ColumnEncoder::encode_numbers(const Column& column, const Table& table, const PlaceOf& place_of,
                                     float* to) const {
  const ColumnSection& section = *column.section;
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(section, from, column.elements, place_of, missing_numbers_); !ok) return ok;
  const double mean = column.fitted->mean;
  const double deviation = column.fitted->deviation;
  const bool is_plain = section.normalise == Normalise::kNone;
  if (from.lengths.empty() && is_plain && column.elements == 1 && missing_numbers_.empty() && are_finite(from.floats)) {
    for (std::uint64_t i = 0; i < table.records; ++i, to += inputs_) *to = from.floats[i];
    return {};
  }
  NumbersOfRecords numbers(from, column.elements, missing_numbers_);
  for (std::uint64_t i = 0; i < table.records; ++i, to += inputs_) {
    for (std::uint64_t e = 0; e < column.elements; ++e) {
      float number = numbers.next(i);
      if (!std::isfinite(number)) {
        const Result<float> found = number_of(section, number, i, place_of);
        if (!found) return tl::unexpected(found.error());
        number = *found;
      }
      to[e] = is_plain ? number : static_cast<float>((double{number} - mean) / deviation);
      if (!std::isfinite(to[e]))
        return fail(ErrorCode::kData, place_of(i) + ": " + std::to_string(number) + " in column '" +
                                          name_in_files(section) + "' is infinite after its normalisation by " +
                                          key_of(section) + ".deviation: correct the record or the deviation");
    }
  }
  return {};
}

Status ColumnEncoder::encode_weights(const Column& column, const Table& table, const PlaceOf& place_of,
                                     float* to) const {
  const ColumnSection& section = *column.section;
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  NumbersOfRecords numbers(from, 1, missing_numbers_);
  for (std::uint64_t i = 0; i < table.records; ++i) {
    const Result<float> weight = number_of(section, numbers.next(i), i, place_of);
    if (!weight) return tl::unexpected(weight.error());
    if (*weight < 0.0F)
      return fail(ErrorCode::kData, place_of(i) + ": the weight " + std::to_string(*weight) + " in column '" +
                                        name_in_files(section) + "', expected at least 0: correct the record");
    to[i] = *weight;
  }
  return {};
}

Status ColumnEncoder::encode_pixels(const Column& column, const Table& table, const PlaceOf& place_of,
                                    const Images& images, std::uint8_t* to) const {
  const TableColumn& from = table.columns[column.from];
  DISTTRAIN_CHECK(images.encoder != nullptr);
  if (Status ok = check_lengths(*column.section, from, 1, place_of); !ok) return ok;
  for (std::uint64_t i = 0; i < table.records; ++i, to += inputs_) {
    const auto file = std::as_bytes(std::span(from.bytes[i]));
    Status made = images.encoder->encode(*column.section, file, images.draw, images.first_record + i, {to, inputs_});
    if (!made) {
      made.error().message = place_of(i) + ", column '" + name_in_files(*column.section) + "': " + made.error().message;
      return made;
    }
  }
  return {};
}

}  // namespace disttrain::input
