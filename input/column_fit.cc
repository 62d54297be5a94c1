#include <algorithm>
#include <cmath>
#include <utility>

#include "common/config/columns.h"
#include "common/printable.h"
#include "input/column_text.h"
#include "input/column_values.h"
#include "input/columns.h"
#include "input/number_text.h"
#include "input/probability.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

// Whether the words of the training set are needed, or the range of its labels.
bool needs_words(const ColumnSection& section) {
  const bool has_words = section.kind == ColumnKind::kLabel || section.kind == ColumnKind::kCategory;
  const bool is_known = section.hash > 0 || !section.vocabulary.empty() || section.normalise == Normalise::kStandard;
  return has_words && has_values(section) && !is_known;
}

bool needs_moments(const ColumnSection& section) {
  return section.normalise == Normalise::kStandard && !section.mean.has_value();
}

void take_number(double number, LabelRange& range) {
  range.smallest = std::min(range.smallest, number);
  range.largest = std::max(range.largest, number);
  range.are_whole = range.are_whole && std::abs(number) <= kLargestWhole && number == std::floor(number);
}

tl::unexpected<Error> too_many(const ColumnSection& section) {
  return fail(ErrorCode::kData, "column '" + name_in_files(section) + "' has more than " + std::to_string(kMaxWords) +
                                    " different words: is it text? Leave it out, or set " + key_of(section) + ".hash");
}

tl::unexpected<Error> too_large(const ColumnSection& section, const WordRoom& room) {
  const std::string key = key_of(section);
  return fail(ErrorCode::kData,
              "the different words of column '" + name_in_files(section) +
                  "', with those of other columns, take more than the " + std::to_string(room.most_bytes() >> 20) +
                  " MiB of memory that words may take while the files are read: is it text? Set " + key + ".hash, " +
                  (section.kind == ColumnKind::kCategory ? "give the words that matter by " + key + ".vocabulary"
                                                         : "list the labels in " + key + ".vocabulary") +
                  ", or raise data.memory");
}

// Whether the labels may be the words of classes.
bool may_be_words(const ColumnSection& section, const std::string& target_taker) {
  return target_taker.empty() && section.normalise == Normalise::kNone;
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

ColumnFit::ColumnFit(const std::vector<ColumnSection>& columns, std::vector<std::string> missing,
                     std::string target_taker, bool takes_probabilities, WordRoom* room)
    : missing_(std::move(missing)),
      missing_numbers_(missing_numbers(missing_)),
      target_taker_(std::move(target_taker)),
      takes_probabilities_(takes_probabilities),
      room_(room) {
  for (const ColumnSection& section : columns)
    if (has_values(section)) columns_.emplace_back().section = &section;
}

Status ColumnFit::take(const Table& table, const PlaceOf& place_of) {
  records_ += table.records;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    const ColumnSection& section = *column.section;
    const TableColumn& from = table.columns[c];
    Status ok;
    if (section.kind == ColumnKind::kLabel && (needs_words(section) || needs_moments(section)))
      ok = take_labels(from, column, table.records, place_of);
    else if (needs_moments(section))
      ok = take_numbers(from, column, table.records, place_of);
    else if (needs_words(section))
      ok = take_categories(from, column, table.records, place_of);
    if (!ok) return ok;
  }
  return {};
}

Status ColumnFit::take_numbers(const TableColumn& from, Column& column, std::uint64_t records,
                               const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  const std::uint64_t per_record = value_count(section);
  if (Status ok = check_lengths(section, from, per_record, place_of, missing_numbers_); !ok) return ok;
  NumbersOfRecords numbers(from, per_record, missing_numbers_);
  for (std::uint64_t i = 0; i < records; ++i) {
    for (std::uint64_t e = 0; e < per_record; ++e) {
      const float found = numbers.next(i);
      column.has_a_value = column.has_a_value || !std::isnan(found);
      const Result<float> number = number_of(section, found, i, place_of);
      if (!number) return tl::unexpected(number.error());
      column.moments.add(double{*number});
    }
  }
  return {};
}

Status ColumnFit::take_categories(const TableColumn& from, Column& column, std::uint64_t records,
                                  const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  WordsOfRecords words(from);
  for (std::uint64_t i = 0; i < records; ++i) {
    const std::string_view word = word_of(words.next(i), missing_);
    column.has_a_value = column.has_a_value || !word.empty();
    if (Status ok = count_word(word, column, i, place_of); !ok) return ok;
  }
  return {};
}

Status ColumnFit::count_word(std::string_view word, Column& column, std::uint64_t record,
                             const PlaceOf& place_of) const {
  const auto known = column.words.find(word);
  if (known != column.words.end()) {
    ++known->second;
    return {};
  }
  if (Status ok = check_word(*column.section, word, place_of(record)); !ok) return ok;
  if (column.words.size() >= kMaxWords) return too_many(*column.section);
  if (room_ != nullptr && !room_->add(word)) return too_large(*column.section, *room_);
  column.words.emplace(word, 1);
  return {};
}

Status ColumnFit::take_labels(const TableColumn& from, Column& column, std::uint64_t records,
                              const PlaceOf& place_of) const {
  const ColumnSection& section = *column.section;
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  WordsOfRecords words(from);
  for (std::uint64_t i = 0; i < records; ++i) {
    const std::string_view text = words.next(i);
    const std::string_view word = label_of(text, section.strip, missing_);
    if (word.empty()) return no_label(section, text, missing_, place_of(i));
    const std::optional<double> number = double_in(word);
    if (column.first.place.empty()) column.first = {number.has_value(), std::string(word), place_of(i)};
    if ((!number && is_infinity(word)) || number.has_value() != column.first.is_number ||
        (!number && !may_be_words(section, target_taker_)))
      return wrong_label(section, word, column.first, place_of(i));
    if (takes_probabilities_ && number && !is_probability(*number))
      return fail(ErrorCode::kData, place_of(i) + ": " + wrong_probability(section, word));
    if (!number) {
      if (Status ok = count_word(word, column, i, place_of); !ok) return ok;
    } else if (needs_moments(section)) {
      column.moments.add(*number);
    } else {
      take_number(*number, column.range);
    }
  }
  return {};
}

Status ColumnFit::wrong_label(const ColumnSection& section, std::string_view word, const FirstLabel& first,
                              const std::string& place) const {
  const std::string label = "the label " + printable(shown_text(word)) + " in column '" + name_in_files(section) + "' ";
  if (is_infinity(word))
    return fail(ErrorCode::kData, place + ": " + label + "is infinite, expected a finite number: correct the record");
  const std::string taker = section.normalise == Normalise::kStandard ? key_of(section) + ".normalise" : target_taker_;
  if (!taker.empty() && !double_in(word))
    return fail(ErrorCode::kData, place + ": " + label + "isn't a number, which " + taker +
                                      " needs: correct the record, or choose a loss for classes");
  return fail(ErrorCode::kData, place + ": " + label + (first.is_number ? "isn't a number" : "is a number") +
                                    ", expected " + (first.is_number ? "a number" : "a word") + " as " +
                                    printable(shown_text(first.label)) + " at " + first.place +
                                    ": correct the record, or list all classes in " + key_of(section) + ".vocabulary");
}

Status ColumnFit::merge(ColumnFit&& later) {
  records_ += later.records_;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    Column& other = later.columns_[c];
    column.moments.add(other.moments);
    column.has_a_value = column.has_a_value || other.has_a_value;
    column.range.are_whole = column.range.are_whole && other.range.are_whole;
    column.range.smallest = std::min(column.range.smallest, other.range.smallest);
    column.range.largest = std::max(column.range.largest, other.range.largest);
    if (column.first.place.empty()) column.first = other.first;
    if (!other.first.place.empty() && other.first.is_number != column.first.is_number)
      return wrong_label(*column.section, other.first.label, column.first, other.first.place);
    column.words.merge(other.words);  // leaves the words that both have
    for (const auto& [word, count] : other.words) {
      column.words.find(word)->second += count;
      if (room_ != nullptr) room_->drop(word);
    }
    other.words = {};
    if (column.words.size() > kMaxWords) return too_many(*column.section);
  }
  return {};
}

Result<FittedColumns> ColumnFit::done(const std::vector<ColumnSection>& columns) const {
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
    if (section.kind != ColumnKind::kLabel && !from.has_a_value && records_ > 0) return no_values(section);
    if (needs_moments(section)) {
      to.mean = from.moments.mean;
      const double variance = from.moments.squares / std::max(1.0, from.moments.count);
      to.deviation = variance > 0.0 ? std::sqrt(variance) : 1.0;
    }
    if (!needs_words(section)) continue;
    to.label = from.range;
    for (const auto& [word, count] : from.words) {
      const bool is_rare = section.kind == ColumnKind::kCategory && count < section.min_count;
      to.has_rare_words = to.has_rare_words || is_rare;
      if (!is_rare) to.vocabulary.push_back(word);
    }
    std::sort(to.vocabulary.begin(), to.vocabulary.end());
    if (to.vocabulary.empty() && to.has_rare_words)
      return fail(ErrorCode::kData, "each word of column '" + name_in_files(section) + "' has fewer than " +
                                        std::to_string(section.min_count) + " records: lower " + key_of(section) +
                                        ".min_count, or leave the column out");
  }
  return fitted;
}

std::vector<ColumnSection> with_vocabularies(std::vector<ColumnSection> columns, const FittedColumns& fitted) {
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].vocabulary = fitted.columns[i].vocabulary;
  return columns;
}

}  // namespace disttrain::input
