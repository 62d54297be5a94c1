#include "workerd/input/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "common/config/columns.h"
#include "workerd/input/load.h"

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

bool has_values(const ColumnSection& column) {
  return column.kind != ColumnKind::kIgnore && column.cross.empty();
}

std::string key_of(const ColumnSection& column) {
  return "data.columns." + column.name;
}

const std::string& name_in_files(const ColumnSection& column) {
  return column.from.empty() ? column.name : column.from;
}

// The word without the characters of `strip` at its end.
std::string stripped(const std::string& word, const std::string& strip) {
  std::size_t size = word.size();
  while (size > 0 && strip.find(word[size - 1]) != std::string::npos) --size;
  return word.substr(0, size);
}

std::optional<double> number_in_word(const std::string& word) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The part of a file's records that is within [begin, end) of all records.
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Calls use(file, part) for each file.
template <typename Use>
void for_each_part(const std::vector<FileColumns>& files, std::uint64_t begin, std::uint64_t end, const Use& use) {
  std::uint64_t first = 0;
  for (const FileColumns& file : files) {
    const std::uint64_t from = std::clamp(begin, first, first + file.records()) - first;
    const std::uint64_t to = std::clamp(end, first, first + file.records()) - first;
    use(file, Part{from, std::max(from, to)});
    first += file.records();
  }
}

// Which words of a file's column the records of the part have.
std::vector<bool> used_words(const FileColumns::Column& column, Part part) {
  std::vector<bool> used(column.words.all().size());
  for (std::uint64_t i = part.begin; i < part.end; ++i) used[column.codes[i]] = true;
  return used;
}

tl::unexpected<Error> no_label(const std::string& place, const ColumnSection& column) {
  return fail(ErrorCode::kData, place + ": no label in column '" + name_in_files(column) +
                                    "', expected a word or a number: correct the line");
}

Result<std::vector<std::string>> sorted_words(const ColumnSection& section, const std::vector<FileColumns>& files,
                                              std::size_t place, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::string> words;
  std::string missing_at;
  for_each_part(files, begin, end, [&](const FileColumns& file, Part part) {
    const FileColumns::Column& column = file.columns()[place];
    const std::vector<bool> used = used_words(column, part);
    for (std::size_t code = 0; code < used.size(); ++code) {
      if (!used[code]) continue;
      words.push_back(stripped(column.words.all()[code], section.strip));
      if (words.back().empty() && missing_at.empty()) missing_at = column.places[code];
    }
  });
  if (section.kind == ColumnKind::kLabel && !missing_at.empty()) return no_label(missing_at, section);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// The mean and the standard deviation of the records [begin, end). A column of equal numbers gets the deviation 1.
void fit_standard(const ColumnSection& section, const std::vector<FileColumns>& files, std::size_t place,
                  std::uint64_t begin, std::uint64_t end, FittedColumn& fitted) {
  if (section.mean.has_value()) {
    fitted.mean = *section.mean;
    fitted.deviation = *section.deviation;
    return;
  }
  const auto sum = [&](const auto& term) {
    double total = 0.0;
    for_each_part(files, begin, end, [&](const FileColumns& file, Part part) {
      for (std::uint64_t i = part.begin; i < part.end; ++i) total += term(double{file.columns()[place].numbers[i]});
    });
    return total / static_cast<double>(end - begin);
  };
  fitted.mean = sum([](double value) { return value; });
  const double variance = sum([&fitted](double value) { return (value - fitted.mean) * (value - fitted.mean); });
  fitted.deviation = variance > 0.0 ? std::sqrt(variance) : 1.0;
}

// The numbers of a file's words, by code.
std::vector<std::int32_t> numbers_of_words(const ColumnSection& section, const FittedColumn& fitted,
                                           const Words& words) {
  std::map<std::string_view, std::int32_t> known;
  for (const std::string& word : fitted.vocabulary) known.emplace(word, static_cast<std::int32_t>(known.size()) + 1);
  std::vector<std::int32_t> numbers;
  for (const std::string& word : words.all()) {
    if (section.hash > 0) {
      numbers.push_back(static_cast<std::int32_t>(hash_of_word(word) % section.hash));
      continue;
    }
    const auto found = known.find(word);
    numbers.push_back(found == known.end() ? 0 : found->second);
  }
  return numbers;
}

// Writes column after column of one array; the values of a record are beside each other.
template <typename T>
class ArrayWriter {
 public:
  ArrayWriter(Values& values, DType dtype, std::uint64_t records, std::uint64_t elements) : elements_(elements) {
    values = {dtype, elements, std::make_unique_for_overwrite<std::byte[]>(records * elements * sizeof(T))};
    begin_ = reinterpret_cast<T*>(values.bytes.get());
  }

  // The values of the column are at the result, and each `stride()` after it.
  T* next_column() { return begin_ + next_++; }
  T* column(std::size_t i) const { return begin_ + i; }
  std::uint64_t stride() const { return elements_; }

 private:
  T* begin_ = nullptr;
  std::uint64_t elements_ = 0;
  std::size_t next_ = 0;
};

void write_numbers(const FittedColumn& fitted, const std::vector<FileColumns>& files, std::size_t place,
                   ArrayWriter<float>& inputs) {
  float* to = inputs.next_column();
  for (const FileColumns& file : files)
    for (const float number : file.columns()[place].numbers) {
      *to = static_cast<float>((double{number} - fitted.mean) / fitted.deviation);
      to += inputs.stride();
    }
}

void write_categories(const ColumnSection& section, const FittedColumn& fitted, const std::vector<FileColumns>& files,
                      std::size_t place, ArrayWriter<std::int32_t>& categories) {
  std::int32_t* to = categories.next_column();
  for (const FileColumns& file : files) {
    const FileColumns::Column& column = file.columns()[place];
    if (section.kind == ColumnKind::kNumeric) {
      const std::vector<double>& boundaries = section.boundaries;
      for (const float number : column.numbers) {
        *to = static_cast<std::int32_t>(std::upper_bound(boundaries.begin(), boundaries.end(), double{number}) -
                                        boundaries.begin());
        to += categories.stride();
      }
      continue;
    }
    const std::vector<std::int32_t> numbers = numbers_of_words(section, fitted, column.words);
    for (const std::uint32_t code : column.codes) {
      *to = numbers[code];
      to += categories.stride();
    }
  }
}

// Combines the columns `parts` of `categories` to its column `place`.
void write_cross(const ColumnSection& section, std::size_t place, const std::vector<std::size_t>& parts,
                 std::uint64_t records, ArrayWriter<std::int32_t>& categories) {
  std::int32_t* to = categories.column(place);
  for (std::uint64_t i = 0; i < records; ++i) {
    std::uint64_t hash = kHashBegin;
    for (const std::size_t part : parts) {
      const auto number = static_cast<std::uint32_t>(categories.column(part)[i * categories.stride()]);
      for (int shift = 0; shift < 32; shift += 8) hash = hashed(hash, static_cast<std::uint8_t>(number >> shift));
    }
    to[i * categories.stride()] = static_cast<std::int32_t>(hash % section.hash);
  }
}

// For each category column of [data.columns], its place in the array of categories.
std::map<std::string, std::size_t> places_of_categories(const std::vector<ColumnSection>& columns) {
  std::map<std::string, std::size_t> places;
  for (const ColumnSection& column : columns)
    if (is_category(column)) places.emplace(column.name, places.size());
  return places;
}

tl::unexpected<Error> unknown_label(const std::string& place, const ColumnSection& section, const std::string& word,
                                    const std::vector<std::string>& vocabulary) {
  std::string known;
  for (std::size_t i = 0; i < std::min<std::size_t>(vocabulary.size(), 10); ++i)
    known += (i == 0 ? "'" : ", '") + vocabulary[i] + "'";
  return fail(ErrorCode::kData, place + ": the label '" + word + "' in column '" + name_in_files(section) +
                                    "' isn't one of the " + std::to_string(vocabulary.size()) + " labels (" + known +
                                    (vocabulary.size() > 10 ? ", ..." : "") + "): correct the file, " +
                                    key_of(section) + ".vocabulary or " + key_of(section) + ".strip");
}

Status write_labels(const ColumnSection& section, const FittedColumn& fitted, const std::vector<FileColumns>& files,
                    std::size_t place, std::uint64_t begin, std::uint64_t end, Contents& contents) {
  const std::vector<std::string>& vocabulary = fitted.vocabulary;
  std::vector<double> numbers;
  numbers.reserve(contents.records);
  Status status;
  for_each_part(files, begin, end, [&](const FileColumns& file, Part part) {
    const FileColumns::Column& column = file.columns()[place];
    const std::vector<bool> used = used_words(column, part);
    std::vector<double> of_code;
    for (std::size_t code = 0; code < used.size(); ++code) {
      const std::string word = stripped(column.words.all()[code], section.strip);
      std::optional<double> number;
      if (vocabulary.empty()) {
        number = number_in_word(word);
      } else if (const auto found = std::find(vocabulary.begin(), vocabulary.end(), word); found != vocabulary.end()) {
        number = static_cast<double>(found - vocabulary.begin());
      }
      if (!number && used[code] && status) {
        if (word.empty())
          status = no_label(column.places[code], section);
        else if (vocabulary.empty())
          status = fail(ErrorCode::kData, column.places[code] + ": the label '" + word + "' in column '" +
                                              name_in_files(section) +
                                              "' isn't a number as those of the training set: correct the file");
        else
          status = unknown_label(column.places[code], section, word, vocabulary);
      }
      of_code.push_back(number.value_or(0.0));
    }
    for (const std::uint32_t code : column.codes) numbers.push_back(of_code[code]);
  });
  if (!status) return status;
  contents.label_names = vocabulary;
  if (take_labels(numbers, contents)) return {};
  contents.targets = values_of(std::vector<float>(numbers.begin(), numbers.end()), 1);
  return {};
}

}  // namespace

std::vector<WantedColumn> wanted_columns(const std::vector<ColumnSection>& columns) {
  std::vector<WantedColumn> wanted;
  for (const ColumnSection& column : columns)
    if (has_values(column))
      wanted.push_back({.name = name_in_files(column),
                        .kind = column.kind == ColumnKind::kNumeric ? ValueKind::kFloat : ValueKind::kBytes});
  return wanted;
}

std::uint32_t Words::code_of(std::string_view word) {
  const auto found = codes_.find(word);
  if (found != codes_.end()) return found->second;
  const auto code = static_cast<std::uint32_t>(words_.size());
  codes_.emplace(words_.emplace_back(word), code);
  return code;
}

FileColumns::FileColumns(const std::vector<ColumnSection>& columns) {
  for (const ColumnSection& column : columns)
    if (has_values(column)) sections_.push_back(&column);
  columns_.resize(sections_.size());
}

Status FileColumns::take(const Table& table, const PlaceOf& place_of) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnSection& section = *sections_[c];
    const TableColumn& from = table.columns[c];
    Column& to = columns_[c];
    const auto bad = [&](std::uint64_t record, const std::string& found, const std::string& advice) {
      return fail(ErrorCode::kData, place_of(record) + ": " + found + " in column '" + name_in_files(section) +
                                        "', expected one value: " + advice);
    };
    for (std::uint64_t i = 0; i < from.lengths.size(); ++i)
      if (from.lengths[i] != 1) return bad(i, std::to_string(from.lengths[i]) + " values", "correct the record");
    if (section.kind == ColumnKind::kNumeric) {
      for (std::uint64_t i = 0; i < table.records; ++i) {
        if (!std::isnan(from.floats[i])) {
          to.numbers.push_back(from.floats[i]);
          continue;
        }
        if (!section.missing) return bad(i, "no value", "correct the file, or set " + key_of(section) + ".missing");
        to.numbers.push_back(static_cast<float>(*section.missing));
      }
      continue;
    }
    for (std::uint64_t i = 0; i < table.records; ++i) {
      const std::uint32_t code = to.words.code_of(from.bytes[i]);
      if (code == to.places.size()) to.places.push_back(place_of(i));
      if (code >= kMaxWords)
        return bad(i, "more than " + std::to_string(kMaxWords) + " different words",
                   "is the column text? Leave it out");
      to.codes.push_back(code);
    }
  }
  records_ += table.records;
  return {};
}

Result<FittedColumns> fit_columns(const std::vector<ColumnSection>& columns, const std::vector<FileColumns>& files,
                                  std::uint64_t begin, std::uint64_t end) {
  FittedColumns fitted;
  std::size_t place = 0;
  for (const ColumnSection& section : columns) {
    FittedColumn& column = fitted.columns.emplace_back();
    column.vocabulary = section.vocabulary;
    if (!has_values(section)) continue;
    if (section.normalise == Normalise::kStandard) fit_standard(section, files, place, begin, end, column);
    const bool needs_words = section.kind == ColumnKind::kLabel || section.kind == ColumnKind::kCategory;
    if (needs_words && section.hash == 0 && section.vocabulary.empty()) {
      Result<std::vector<std::string>> words = sorted_words(section, files, place, begin, end);
      if (!words) return tl::unexpected(words.error());
      const bool are_numbers = section.kind == ColumnKind::kLabel &&
                               std::all_of(words->begin(), words->end(),
                                           [](const std::string& word) { return number_in_word(word).has_value(); });
      if (!are_numbers) column.vocabulary = std::move(*words);
    }
    ++place;
  }
  return fitted;
}

std::vector<std::uint32_t> category_sizes(const std::vector<ColumnSection>& columns, const FittedColumns& fitted) {
  std::vector<ColumnSection> known = columns;
  for (std::size_t i = 0; i < known.size(); ++i) known[i].vocabulary = fitted.columns[i].vocabulary;
  return known_category_sizes(known, 1);
}

Result<Contents> encode_columns(const std::vector<ColumnSection>& columns, const FittedColumns& fitted,
                                const std::vector<FileColumns>& files, std::uint64_t begin, std::uint64_t end) {
  Contents contents;
  for (const FileColumns& file : files) contents.records += file.records();
  const auto count = [&columns](bool (*is)(const ColumnSection&)) {
    return static_cast<std::uint64_t>(std::count_if(columns.begin(), columns.end(), is));
  };
  ArrayWriter<float> inputs(contents.inputs, DType::kFloat32, contents.records, count(is_number));
  ArrayWriter<std::int32_t> categories(contents.categories, DType::kInt32, contents.records, count(is_category));
  const std::map<std::string, std::size_t> places = places_of_categories(columns);
  std::size_t place = 0;
  std::size_t i = 0;
  // The columns of a cross may come after it, so crosses are written last, at the places that they have.
  for (const ColumnSection& section : columns) {
    const FittedColumn& column = fitted.columns[i++];
    if (is_number(section)) write_numbers(column, files, place, inputs);
    if (section.kind == ColumnKind::kLabel)
      if (Status ok = write_labels(section, column, files, place, begin, end, contents); !ok)
        return tl::unexpected(ok.error());
    if (is_category(section)) {
      if (section.cross.empty())
        write_categories(section, column, files, place, categories);
      else
        categories.next_column();
    }
    if (has_values(section)) ++place;
  }
  for (const ColumnSection& section : columns) {
    if (section.cross.empty()) continue;
    std::vector<std::size_t> parts;
    for (const std::string& name : section.cross) parts.push_back(places.at(name));
    write_cross(section, places.at(section.name), parts, contents.records, categories);
  }
  return contents;
}

}  // namespace disttrain::input
