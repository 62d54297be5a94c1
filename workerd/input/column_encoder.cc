#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "common/check.h"
#include "common/config/columns.h"
#include "workerd/input/column_values.h"
#include "workerd/input/columns.h"
#include "workerd/input/encode_images.h"
#include "workerd/input/encode_tokens.h"
#include "workerd/input/number_text.h"

namespace disttrain::input {

namespace {

// FNV-1a, 64 bits. The numbers of hashed categories must never change, because checkpoints depend on them.
constexpr std::uint64_t kHashBegin = 14695981039346656037u;
std::uint64_t hashed(std::uint64_t hash, std::uint8_t byte) {
  return (hash ^ byte) * 1099511628211u;
}
std::uint64_t hash_of_word(std::string_view word) {
  std::uint64_t hash = kHashBegin;
  for (const char c : word) hash = hashed(hash, static_cast<std::uint8_t>(c));
  return hash;
}

bool has_nan(const std::vector<float>& values) {
  bool found = false;
  for (const float value : values) found |= value != value;
  return found;
}

// A number of the files was rounded to float32. So the boundary is, too: otherwise 0.7 would be below the boundary 0.7.
bool is_below(float number, double boundary) {
  return number < static_cast<float>(boundary);
}

// Remembers the numbers of the words of one table by the addresses of their text: some decoders give equal words the
// same text. It has few places; a word drops another one from its place.
template <typename Number>
class KnownWords {
 public:
  const Number* find(std::string_view word) const {
    const Place& place = places_[index_of(word)];
    return place.text == word.data() && place.size == word.size() ? &place.number : nullptr;
  }
  Number keep(std::string_view word, Number number) {
    places_[index_of(word)] = {word.data(), word.size(), number};
    return number;
  }

 private:
  struct Place {
    const char* text = &kNoText;
    std::size_t size = 0;
    Number number{};
  };
  static constexpr std::size_t kPlaces = 256;
  static constexpr char kNoText = '\0';  // no word has its address

  static std::size_t index_of(std::string_view word) {
    const auto address = reinterpret_cast<std::uintptr_t>(word.data());
    return (address ^ (address >> 8)) % kPlaces;
  }

  std::array<Place, kPlaces> places_;
};

tl::unexpected<Error> unknown_label(const std::string& place, const ColumnSection& section, std::string_view word,
                                    const std::vector<std::string>& vocabulary) {
  std::string known;
  for (std::size_t i = 0; i < std::min<std::size_t>(vocabulary.size(), 10); ++i)
    known += (i == 0 ? "'" : ", '") + vocabulary[i] + "'";
  return fail(ErrorCode::kData, place + ": the label '" + std::string(word) + "' in column '" + name_in_files(section) +
                                    "' isn't one of the " + std::to_string(vocabulary.size()) + " labels (" + known +
                                    (vocabulary.size() > 10 ? ", ..." : "") + "): correct the file, " +
                                    key_of(section) + ".vocabulary or " + key_of(section) + ".strip");
}

}  // namespace

std::vector<WantedColumn> wanted_columns(const std::vector<ColumnSection>& columns) {
  std::vector<WantedColumn> wanted;
  for (const ColumnSection& column : columns)
    if (has_values(column))
      wanted.push_back({.name = name_in_files(column),
                        .kind = column.kind == ColumnKind::kNumeric || is_weight(column) ? ValueKind::kFloat
                                : is_tokens(column) && column.tokenizer.empty()          ? ValueKind::kInteger
                                                                                         : ValueKind::kBytes});
  return wanted;
}

ColumnEncoder::ColumnEncoder(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  std::map<std::string, std::uint64_t> places;  // of each category
  std::size_t from = 0;
  const std::vector<ColumnSection> known = with_vocabularies(columns, fitted);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSection& section = columns[i];
    if (section.kind == ColumnKind::kIgnore) continue;
    Column column{&section, &fitted.columns[i], from, 0, value_count(section), 0, {}, {}};
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
      has_classes_ = !column.numbers.empty() || column.fitted->label.are_classes;
    }
    columns_.push_back(std::move(column));
  }
  // The columns of a cross may come after it.
  for (Column& column : columns_)
    for (const std::string& name : column.section->cross) column.cross.push_back(places.at(name));
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

std::uint64_t ColumnEncoder::most_bytes(std::uint64_t records, std::uint64_t content_bytes) const {
  const std::uint64_t record_bytes =
      (inputs_ + categories_ + (has_weights_ ? 1 : 0)) * sizeof(float) + (has_labels_ ? sizeof(std::int64_t) : 0);
  std::uint64_t bytes = records * record_bytes;
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
  rows.classes.resize(has_labels_ && has_classes_ ? rows.records : 0);
  rows.targets.resize(has_classes_ ? 0 : rows.records);
  rows.weights.resize(has_weights_ ? rows.records : 0);
}

RowsOut ColumnEncoder::rows_at(EncodedRows& rows, std::uint64_t first) const {
  return {.inputs = rows.inputs.data() + (has_pixels_ ? 0 : first * inputs_),
          .pixels = rows.pixels.data() + (has_pixels_ ? first * inputs_ : 0),
          .categories = rows.categories.data() + first * categories_,
          .classes = rows.classes.data() + (has_labels_ && has_classes_ ? first : 0),
          .targets = rows.targets.data() + (has_classes_ ? 0 : first),
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
      ok = encode_one_hot(column, table, place_of, to.inputs + column.to);
    else
      ok = encode_categories(column, table, place_of, to.categories + column.to);
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
  if (Status ok = check_lengths(section, from, column.elements, place_of); !ok) return ok;
  const double mean = column.fitted->mean;
  const double deviation = column.fitted->deviation;
  const bool is_plain = section.normalise == Normalise::kNone;
  if (from.lengths.empty() && is_plain && column.elements == 1 && !has_nan(from.floats)) {
    for (std::uint64_t i = 0; i < table.records; ++i, to += inputs_) *to = from.floats[i];
    return {};
  }
  NumbersOfRecords numbers(from);
  for (std::uint64_t i = 0; i < table.records; ++i, to += inputs_) {
    for (std::uint64_t e = 0; e < column.elements; ++e) {
      float number = numbers.next(i);
      if (std::isnan(number)) {
        const Result<float> found = number_of(section, number, i, place_of);
        if (!found) return tl::unexpected(found.error());
        number = *found;
      }
      to[e] = is_plain ? number : static_cast<float>((double{number} - mean) / deviation);
    }
  }
  return {};
}

Status ColumnEncoder::encode_weights(const Column& column, const Table& table, const PlaceOf& place_of,
                                     float* to) const {
  const ColumnSection& section = *column.section;
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  NumbersOfRecords numbers(from);
  for (std::uint64_t i = 0; i < table.records; ++i) {
    const Result<float> weight = number_of(section, numbers.next(i), i, place_of);
    if (!weight) return tl::unexpected(weight.error());
    if (!(*weight >= 0.0F && std::isfinite(*weight)))
      return fail(ErrorCode::kData, place_of(i) + ": the weight " + std::to_string(*weight) + " in column '" +
                                        name_in_files(section) +
                                        "', expected a finite number of at least 0: correct "
                                        "the record");
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

// Calls put(number) with the category of each record.
template <typename Put>
Status ColumnEncoder::number_categories(const Column& column, const Table& table, const PlaceOf& place_of,
                                        const Put& put) const {
  const ColumnSection& section = *column.section;
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  if (section.kind == ColumnKind::kNumeric) {
    const std::vector<double>& boundaries = section.boundaries;
    NumbersOfRecords numbers(from);
    for (std::uint64_t i = 0; i < table.records; ++i) {
      const Result<float> number = number_of(section, numbers.next(i), i, place_of);
      if (!number) return tl::unexpected(number.error());
      const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), *number, is_below);
      put(static_cast<std::int32_t>(above - boundaries.begin()));
    }
    return {};
  }
  KnownWords<std::int32_t> known;
  for (std::uint64_t i = 0; i < table.records; ++i) {
    const std::string_view word = from.bytes[i];
    if (const std::int32_t* const number = known.find(word)) {
      put(*number);
    } else if (section.hash > 0) {
      put(known.keep(word, static_cast<std::int32_t>(hash_of_word(word) % section.hash)));
    } else {
      const auto found = column.numbers.find(word);
      put(known.keep(word, found == column.numbers.end() ? 0 : found->second));
    }
  }
  return {};
}

Status ColumnEncoder::encode_categories(const Column& column, const Table& table, const PlaceOf& place_of,
                                        std::int32_t* to) const {
  return number_categories(column, table, place_of, [&to, this](std::int32_t number) {
    *to = number;
    to += categories_;
  });
}

Status ColumnEncoder::encode_one_hot(const Column& column, const Table& table, const PlaceOf& place_of,
                                     float* to) const {
  return number_categories(column, table, place_of, [&to, &column, this](std::int32_t number) {
    std::fill_n(to, column.size, 0.0F);
    to[number] = 1.0F;
    to += inputs_;
  });
}

// Combines the columns `column.cross` of the array of categories.
void ColumnEncoder::encode_cross(const Column& column, std::uint64_t records, std::int32_t* rows) const {
  for (std::uint64_t i = 0; i < records; ++i, rows += categories_) {
    std::uint64_t hash = kHashBegin;
    for (const std::uint64_t part : column.cross) {
      const auto number = static_cast<std::uint32_t>(rows[part]);
      for (int shift = 0; shift < 32; shift += 8) hash = hashed(hash, static_cast<std::uint8_t>(number >> shift));
    }
    rows[column.to] = static_cast<std::int32_t>(hash % column.section->hash);
  }
}

Status ColumnEncoder::encode_labels(const Column& column, const Table& table, const PlaceOf& place_of,
                                    const RowsOut& to) const {
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(*column.section, from, 1, place_of); !ok) return ok;
  KnownWords<double> known;
  for (std::uint64_t i = 0; i < table.records; ++i) {
    const std::string_view word = from.bytes[i];
    double number = 0.0;
    if (const double* const its = known.find(word)) {
      number = *its;
    } else {
      const std::string_view bare = stripped(word, column.section->strip);
      const auto found = column.numbers.find(bare);
      if (found != column.numbers.end()) {
        number = found->second;
      } else {
        const Result<double> read = label_of(column, bare, i, place_of);
        if (!read) return tl::unexpected(read.error());
        number = *read;
      }
      known.keep(word, number);
    }
    if (has_classes_)
      to.classes[i] = static_cast<std::int64_t>(number);
    else
      to.targets[i] = static_cast<float>(number);
  }
  return {};
}

// The number of a label that isn't in the vocabulary.
Result<double> ColumnEncoder::label_of(const Column& column, std::string_view word, std::uint64_t record,
                                       const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  if (word.empty()) return no_label(section, place_of(record));
  if (!column.numbers.empty()) return unknown_label(place_of(record), section, word, column.fitted->vocabulary);
  const auto bad = [&](const std::string& what) {
    return fail(ErrorCode::kData, place_of(record) + ": the label '" + std::string(word) + "' in column '" +
                                      name_in_files(section) + "' " + what);
  };
  const std::optional<double> number = double_in(word);
  if (!number) return bad("isn't a number as those of the training set: correct the file");
  constexpr double kLargest = 1ull << 53;
  if (has_classes_ && (*number < 0.0 || *number > kLargest || *number != std::floor(*number)))
    return bad("isn't a whole number of at least 0 as those of the training set: correct the file");
  if (!has_classes_ && std::abs(*number) > std::numeric_limits<float>::max())
    return bad("is too large for float32: scale the labels");
  return *number;
}

}  // namespace disttrain::input
