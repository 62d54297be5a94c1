// The columns of words: categories, their crosses and one-hot numbers, and labels. Numbers become categories by
// boundaries.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "common/printable.h"
#include "input/column_text.h"
#include "input/column_values.h"
#include "input/columns.h"
#include "input/number_text.h"
#include "input/probability.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

// FNV-1a, 64 bits. Checkpoints depend on the numbers of hashed categories, and don't keep their words. So a change of
// the hash, or of a word (number_word.h), gives a trained category another number without an error. CHANGELOG.md must
// name such a change.
constexpr std::uint64_t kHashBegin = 14695981039346656037u;
std::uint64_t hashed(std::uint64_t hash, std::uint8_t byte) {
  return (hash ^ byte) * 1099511628211u;
}
std::uint64_t hash_of_word(std::string_view word) {
  std::uint64_t hash = kHashBegin;
  for (const char c : word) hash = hashed(hash, static_cast<std::uint8_t>(c));
  return hash;
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
    known += (i == 0 ? "" : ", ") + shown_text(vocabulary[i]);
  return fail(ErrorCode::kData, place + ": the label " + printable(shown_text(word)) + " in column '" +
                                    name_in_files(section) + "' isn't one of the " + std::to_string(vocabulary.size()) +
                                    " labels (" + known + (vocabulary.size() > 10 ? ", ..." : "") +
                                    "): correct the record, " + key_of(section) + ".vocabulary or " + key_of(section) +
                                    ".strip");
}

}  // namespace

// Calls put(number) with the category of each record.
template <typename Put>
Status ColumnEncoder::number_categories(const Column& column, const Table& table, const PlaceOf& place_of,
                                        const Put& put) const {
  const ColumnSection& section = *column.section;
  const TableColumn& from = table.columns[column.from];
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  if (section.kind == ColumnKind::kNumeric) {
    const std::vector<double>& boundaries = section.boundaries;
    NumbersOfRecords numbers(from, 1, missing_numbers_);
    for (std::uint64_t i = 0; i < table.records; ++i) {
      const Result<float> number = number_of(section, numbers.next(i), i, place_of);
      if (!number) return tl::unexpected(number.error());
      const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), *number, is_below);
      put(static_cast<std::int32_t>(above - boundaries.begin()));
    }
    return {};
  }
  KnownWords<std::int32_t> known;
  WordsOfRecords words(from);
  for (std::uint64_t i = 0; i < table.records; ++i) {
    const std::string_view text = words.next(i);
    const std::int32_t* const its = known.find(text);
    std::int32_t number = 0;
    if (its != nullptr) {
      number = *its;
    } else {
      const Result<std::int32_t> found = number_of_word(column, text, i, place_of);
      if (!found) return tl::unexpected(found.error());
      number = known.keep(text, *found);
    }
    put(number);
  }
  return {};
}

Result<std::int32_t> ColumnEncoder::number_of_word(const Column& column, std::string_view text, std::uint64_t record,
                                                   const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  const std::string_view word = word_of(text, missing_);
  if (section.hash == 0) {
    const auto found = column.numbers.find(word);
    if (found != column.numbers.end()) return found->second;
  }
  if (wrong_bytes(word))
    if (Status ok = check_word(section, word, place_of(record)); !ok) return tl::unexpected(ok.error());
  return section.hash == 0 ? 0 : static_cast<std::int32_t>(hash_of_word(word) % section.hash);
}

Status ColumnEncoder::encode_categories(const Column& column, const Table& table, const PlaceOf& place_of,
                                        const RowsOut& to) const {
  std::int32_t* row = to.categories + column.to;
  return number_categories(column, table, place_of, [&row, this](std::int32_t number) {
    *row = number;
    row += categories_;
  });
}

Status ColumnEncoder::encode_one_hot(const Column& column, const Table& table, const PlaceOf& place_of,
                                     const RowsOut& to) const {
  float* row = to.inputs + column.to;
  return number_categories(column, table, place_of, [&row, &column, this](std::int32_t number) {
    std::fill_n(row, column.size, 0.0F);
    row[number] = 1.0F;
    row += inputs_;
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
    const std::string_view text = from.bytes[i];
    double number = 0.0;
    if (const double* const its = known.find(text)) {
      number = *its;
    } else {
      const std::string_view word = label_of(text, column.section->strip, missing_);
      const auto found = column.numbers.find(word);
      if (found != column.numbers.end()) {
        number = found->second;
      } else {
        if (word.empty()) return no_label(*column.section, text, missing_, place_of(i));
        const Result<double> read = number_of_label(column, word, i, place_of);
        if (!read) return tl::unexpected(read.error());
        number = *read;
      }
      known.keep(text, number);
    }
    if (has_whole_labels_)
      to.classes[i] = static_cast<std::int64_t>(number);
    else
      to.targets[i] = static_cast<float>(number);
  }
  return {};
}

// The number of a label that isn't in the vocabulary.
Result<double> ColumnEncoder::number_of_label(const Column& column, std::string_view word, std::uint64_t record,
                                              const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  if (!column.numbers.empty()) return unknown_label(place_of(record), section, word, column.fitted->vocabulary);
  const auto bad = [&](const std::string& what) {
    return fail(ErrorCode::kData, place_of(record) + ": the label " + printable(shown_text(word)) + " in column '" +
                                      name_in_files(section) + "' " + what);
  };
  const std::optional<double> number = double_in(word);
  if (!number && is_infinity(word)) return bad("is infinite, expected a finite number: correct the record");
  if (!number) return bad("isn't a number as those of the training set: correct the record");
  if (takes_probabilities_ && !is_probability(*number))
    return fail(ErrorCode::kData, place_of(record) + ": " + wrong_probability(section, word));
  const bool is_whole = std::abs(*number) <= kLargestWhole && *number == std::floor(*number);
  if (has_whole_labels_ && !is_whole)
    return bad("isn't a whole number as those of the training set: correct the record");
  if (has_whole_labels_ && *number < 0.0 && column.fitted->label.are_classes())
    return bad("isn't a class, a whole number of at least 0, as those of the training set: correct the record");
  if (!has_whole_labels_ && std::abs(*number) > std::numeric_limits<float>::max())
    return bad("is too large for float32: scale the labels");
  return *number;
}

}  // namespace disttrain::input
