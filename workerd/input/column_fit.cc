#include <algorithm>
#include <cmath>
#include <utility>

#include "common/config/columns.h"
#include "workerd/input/column_values.h"
#include "workerd/input/columns.h"
#include "workerd/input/number_text.h"

namespace disttrain::input {

namespace {

bool needs_words(const ColumnSection& section) {
  const bool has_words = section.kind == ColumnKind::kLabel || section.kind == ColumnKind::kCategory;
  return has_words && has_values(section) && section.hash == 0 && section.vocabulary.empty();
}

bool needs_moments(const ColumnSection& section) {
  return section.normalise == Normalise::kStandard && !section.mean.has_value();
}

void take_number(double number, LabelRange& range) {
  constexpr double kLargest = 1ull << 53;  // float64 can represent every whole number up to this one
  range.smallest = std::min(range.smallest, number);
  range.largest = std::max(range.largest, number);
  range.are_classes = range.are_classes && number >= 0.0 && number <= kLargest && number == std::floor(number);
}

tl::unexpected<Error> too_many(const ColumnSection& section) {
  return fail(ErrorCode::kData, "column '" + name_in_files(section) + "' has more than " + std::to_string(kMaxWords) +
                                    " different words: is it text? Leave it out, or set " + key_of(section) + ".hash");
}

}  // namespace

std::optional<std::vector<ColumnSection>> columns_to_fit(const std::vector<ColumnSection>& columns) {
  std::vector<ColumnSection> wanted = columns;
  bool is_needed = false;
  for (ColumnSection& section : wanted) {
    const bool is_open = needs_words(section) || needs_moments(section);
    is_needed = is_needed || is_open;
    if (!is_open) section.kind = ColumnKind::kIgnore;
  }
  return is_needed ? std::optional(std::move(wanted)) : std::nullopt;
}

void ColumnFit::Moments::add(double value) {
  count += 1.0;
  const double before = value - mean;
  mean += before / count;
  squares += before * (value - mean);
}

void ColumnFit::Moments::add(const Moments& other) {
  if (other.count == 0.0) return;
  const double total = count + other.count;
  const double apart = other.mean - mean;
  squares += other.squares + apart * apart * count * other.count / total;
  mean += apart * other.count / total;
  count = total;
}

ColumnFit::ColumnFit(const std::vector<ColumnSection>& columns) {
  for (const ColumnSection& section : columns)
    if (has_values(section)) columns_.push_back({&section, {}, {}});
}

Status ColumnFit::take(const Table& table, const PlaceOf& place_of) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    const ColumnSection& section = *column.section;
    const TableColumn& from = table.columns[c];
    if (needs_moments(section))
      if (Status ok = take_numbers(from, column, table.records, place_of); !ok) return ok;
    if (!needs_words(section)) continue;
    if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
    if (Status ok = take_words(from, column, table.records, place_of); !ok) return ok;
  }
  return {};
}

Status ColumnFit::take_numbers(const TableColumn& from, Column& column, std::uint64_t records,
                               const PlaceOf& place_of) {
  const ColumnSection& section = *column.section;
  const std::uint64_t per_record = value_count(section);
  if (Status ok = check_lengths(section, from, per_record, place_of); !ok) return ok;
  NumbersOfRecords numbers(from);
  for (std::uint64_t i = 0; i < records; ++i) {
    for (std::uint64_t e = 0; e < per_record; ++e) {
      const Result<float> number = number_of(section, numbers.next(i), i, place_of);
      if (!number) return tl::unexpected(number.error());
      column.moments.add(double{*number});
    }
  }
  return {};
}

// pandas writes a missing label so, and C's printf() may write a sign before it. As a word it would silently make
// classes of all other numbers.
static bool is_nan(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return word == "nan" || word == "NaN" || word == "NAN";
}

Status ColumnFit::take_words(const TableColumn& from, Column& column, std::uint64_t records, const PlaceOf& place_of) {
  const ColumnSection& section = *column.section;
  Words& words = column.words;
  const bool is_label = section.kind == ColumnKind::kLabel;
  std::string_view last;
  for (std::uint64_t i = 0; i < records; ++i) {
    const std::string_view word = stripped(from.bytes[i], section.strip);
    if (i > 0 && word == last) continue;
    last = word;
    if (is_label && (word.empty() || is_nan(word))) return no_label(section, place_of(i));
    if (is_label && words.are_numbers) {
      if (const std::optional<double> number = double_in(word)) {
        take_number(*number, words.range);
        // Numbers may be many, and only their range is of use unless a word follows.
        words.is_complete = words.is_complete && words.words.size() < kMaxNumberWords;
        if (!words.is_complete) continue;
      } else if (!words.is_complete) {
        return fail(ErrorCode::kData, place_of(i) + ": the label '" + std::string(word) + "' in column '" +
                                          name_in_files(section) +
                                          "' isn't a number, but the labels before it are: " + "correct the file");
      } else {
        words.are_numbers = false;
      }
    }
    if (words.words.size() >= kMaxWords) return too_many(section);
    words.words.emplace(word);
  }
  return {};
}

Status ColumnFit::merge(ColumnFit&& later) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    Column& other = later.columns_[c];
    column.moments.add(other.moments);
    column.words.words.merge(other.words.words);
    column.words.are_numbers = column.words.are_numbers && other.words.are_numbers;
    LabelRange& range = column.words.range;
    range.are_classes = range.are_classes && other.words.range.are_classes;
    range.smallest = std::min(range.smallest, other.words.range.smallest);
    range.largest = std::max(range.largest, other.words.range.largest);
    column.words.is_complete = column.words.is_complete && other.words.is_complete;
    if (column.words.are_numbers) continue;
    if (!column.words.is_complete)
      return fail(ErrorCode::kData, "some labels in column '" + name_in_files(*column.section) +
                                        "' are words, and more than " + std::to_string(kMaxNumberWords) +
                                        " others are numbers: correct the files");
    if (column.words.words.size() > kMaxWords) return too_many(*column.section);
  }
  return {};
}

FittedColumns ColumnFit::done(const std::vector<ColumnSection>& columns) const {
  FittedColumns fitted;
  std::size_t next = 0;
  for (const ColumnSection& section : columns) {
    FittedColumn& to = fitted.columns.emplace_back();
    to.vocabulary = section.vocabulary;
    to.mean = section.mean.value_or(0.0);
    to.deviation = section.deviation.value_or(1.0);
    if (!needs_moments(section) && !needs_words(section)) continue;
    while (columns_[next].section->name != section.name) ++next;  // a pass may read other columns, too
    const Column& from = columns_[next++];
    if (needs_moments(section)) {
      to.mean = from.moments.mean;
      const double variance = from.moments.squares / std::max(1.0, from.moments.count);
      to.deviation = variance > 0.0 ? std::sqrt(variance) : 1.0;
    }
    if (!needs_words(section)) continue;
    if (section.kind == ColumnKind::kLabel && from.words.are_numbers) {
      to.label = from.words.range;
      continue;
    }
    to.vocabulary.assign(from.words.words.begin(), from.words.words.end());
    std::sort(to.vocabulary.begin(), to.vocabulary.end());
  }
  return fitted;
}

std::vector<ColumnSection> with_vocabularies(std::vector<ColumnSection> columns, const FittedColumns& fitted) {
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].vocabulary = fitted.columns[i].vocabulary;
  return columns;
}

}  // namespace disttrain::input
