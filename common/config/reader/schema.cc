#include "common/config/reader/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/bounds.h"
#include "common/nearest_word.h"
#include "common/printable.h"

namespace disttrain::config {

namespace {

struct Unit {
  const char* name;
  std::uint64_t size;
};
constexpr char kString[] = "a string";

constexpr Unit kSizes[] = {{"TiB", std::uint64_t{1} << 40},
                           {"GiB", std::uint64_t{1} << 30},
                           {"MiB", std::uint64_t{1} << 20},
                           {"KiB", std::uint64_t{1} << 10},
                           {"B", 1}};
constexpr Unit kTimes[] = {{"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
                           {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1}};

// Parses a text such as "1.5s" and returns the number in the smallest unit (bytes or nanoseconds). Returns none if the
// text isn't a number of at most 15 digits followed by one of the units.
template <std::size_t N>
std::optional<std::uint64_t> parse_with_unit(const std::string& text, const Unit (&units)[N]) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string::npos || digits > 15) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + digits) return std::nullopt;
  for (const Unit& unit : units)
    if (text.compare(digits, std::string::npos, unit.name) == 0) {
      const double product = number * static_cast<double>(unit.size);
      if (product >= 9.2e18) return std::nullopt;
      return static_cast<std::uint64_t>(std::llround(product));
    }
  return std::nullopt;
}

template <std::size_t N>
std::string with_unit(std::uint64_t value, const Unit (&units)[N], const char* zero) {
  for (const Unit& unit : units)
    if (value != 0 && value % unit.size == 0) return std::to_string(value / unit.size) + unit.name;
  return zero;
}

std::string number_text(double value) {
  std::string text = to_toml(value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text;
}

std::string range_text(Range range) {
  const std::string low = number_text(range.low);
  const bool unbounded = range.high >= kNoLimit;
  if (range.low <= -kNoLimit && unbounded) return "a number";
  if (unbounded) return range.low_included ? "a number of at least " + low : "a number above " + low;
  return "a number " + std::string(range.low_included ? "from " : "above ") + low +
         (range.high_included ? " to " : ", below ") + number_text(range.high);
}

// Update rules, schedules and input compute in float32, where 1e308 would become infinite and 1e-300 would become 0.
bool fits_float(double value) {
  const auto size = static_cast<float>(std::abs(value));
  return std::isfinite(size) && (size >= std::numeric_limits<float>::min() || value == 0.0);
}

bool is_in(double value, Range range) {
  return !std::isnan(value) && (range.low_included ? value >= range.low : value > range.low) &&
         (range.high_included ? value <= range.high : value < range.high);
}

std::string doc_of(const Key& key) {
  return key.doc.empty() ? "" : " (" + key.doc + ")";
}

}  // namespace

bool is_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return false;
  const std::string host = text.substr(0, colon);
  const bool is_bracketed = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (!is_bracketed && host.find_first_of(":[]/ ") != std::string::npos) return false;
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

void suggest_other_sections(const std::vector<std::string>& all_names, Reading& reading) {
  for (Problem& problem : reading.problems) {
    if (!problem.is_unknown || !problem.nearest.empty()) continue;
    const std::string last = problem.key.substr(problem.key.rfind('.') + 1);
    for (const std::string& name : all_names)
      if (name.substr(name.rfind('.') + 1) == last) problem.nearest = name;
  }
}

bool Reading::has_room() {
  if (problems.size() < kMaxProblems) return true;
  ++left_out;
  return false;
}

void Reading::refuse(const TomlPosition& at, const std::string& key, const std::string& sentence) {
  if (has_room()) problems.push_back(Problem{at, key, "", "", "", sentence, false});
}

bool Reading::is_refused(const std::string& key) const {
  return std::any_of(problems.begin(), problems.end(), [&key](const Problem& problem) {
    return problem.key == key || problem.key.starts_with(key + "[");
  });
}

bool Reading::has_unknown(const std::string& section) const {
  return std::any_of(problems.begin(), problems.end(), [&section](const Problem& problem) {
    return problem.is_unknown && problem.key.starts_with(section + ".");
  });
}

void Reading::refuse(const std::string& key, const std::string& sentence) {
  std::string place = key;
  auto found = given.find(place);
  while (found == given.end() && !place.empty()) {
    const std::size_t dot = place.rfind('.');
    place = dot == std::string::npos ? "" : place.substr(0, dot);
    found = given.find(place);
  }
  refuse(found == given.end() ? TomlPosition{} : found->second, key, sentence);
}

void refuse_value(const TomlValue& value, const std::string& path, const std::string& expected, Reading& reading,
                  const std::string& nearest) {
  if (!reading.has_room()) return;
  std::string found = to_toml(value);
  constexpr std::size_t kLongestShown = 60;
  if (found.size() > kLongestShown) found = found.substr(0, kLongestShown) + "...";
  reading.problems.push_back(Problem{value.at, path, found, expected, nearest, "", false});
}

void read_table(const Keys& keys, const TomlValue& table, const std::string& path, Reading& reading) {
  const auto* entries = table.as<TomlValue::Table>();
  if (entries == nullptr) return refuse_value(table, path, "a table", reading);
  for (const TomlEntry& entry : *entries) {
    const auto key = std::find_if(keys.begin(), keys.end(), [&entry](const Key& k) { return k.name == entry.key; });
    if (key == keys.end()) {
      if (!reading.has_room()) continue;
      std::vector<std::string> names;
      for (const Key& k : keys) names.push_back(k.name);
      const std::string nearest = nearest_word(entry.key, names);
      std::string known = "known here:";
      for (const std::string& name : names) known += " " + name;
      reading.problems.push_back(
          Problem{entry.key_at, path + entry.key, "", known, nearest, path + entry.key + " is not a known key", true});
      continue;
    }
    reading.given[path + entry.key] = entry.value.at;
    key->field.read(entry.value, path + entry.key, reading);
  }
  for (const Key& key : keys)
    if (key.field.is_required && find(*entries, key.name) == nullptr && reading.has_room())
      reading.problems.push_back(
          Problem{table.at, path + key.name, "", key.field.expected + doc_of(key), "", "", false});
}

TomlValue::Table write_table(const Keys& keys) {
  TomlValue::Table table;
  for (const Key& key : keys)
    if (auto value = key.field.write()) table.push_back(TomlEntry{key.name, {}, std::move(*value)});
  return table;
}

Field text_of(std::string& to, std::string expected, std::function<bool(const std::string&)> fits) {
  return Field{expected,
               [&to, expected, fits](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* found = value.as<std::string>();
                 if (found == nullptr && expected != kString)
                   return refuse_value(value, path, expected + ", as a string in quotes", reading);
                 if (found == nullptr || !fits(*found)) return refuse_value(value, path, expected, reading);
                 if (found->size() > kMaxTextBytes)
                   return refuse_value(value, path,
                                       expected + " of at most " + std::to_string(kMaxTextBytes) + " bytes", reading);
                 to = *found;
               },
               [&to] { return std::optional(toml(to)); }};
}

Field text(std::string& to) {
  return text_of(to, kString, [](const std::string&) { return true; });
}

Field printable_name(std::string& to) {
  return text_of(to, std::string("a name ") + kPrintableWords,
                 [](const std::string& name) { return is_printable(name); });
}

Field texts(std::vector<std::string>& to, std::size_t most, std::size_t least) {
  const std::string expected = "a list of strings";
  return Field{expected,
               [&to, most, least, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* list = value.as<TomlValue::Array>();
                 if (list == nullptr) return refuse_value(value, path, expected, reading);
                 if (list->size() < least)
                   return refuse_value(value, path, expected + " with at least " + std::to_string(least), reading);
                 if (list->size() > most)
                   return refuse_value(value, path, expected + " with at most " + std::to_string(most), reading);
                 to.clear();
                 for (const TomlValue& element : *list) {
                   const auto* found = element.as<std::string>();
                   if (found == nullptr || found->size() > kMaxTextBytes)
                     return refuse_value(element, path,
                                         "a string of at most " + std::to_string(kMaxTextBytes) + " bytes", reading);
                   to.push_back(*found);
                 }
               },
               [&to]() -> std::optional<TomlValue> {
                 if (to.empty()) return std::nullopt;
                 TomlValue::Array list;
                 for (const std::string& text : to) list.push_back(toml(text));
                 return TomlValue{std::move(list), {}};
               }};
}

Field not_if_empty(Field field, const std::string& value) {
  field.write = [write = std::move(field.write), &value]() -> std::optional<TomlValue> {
    return value.empty() ? std::nullopt : write();
  };
  return field;
}

Field boolean(bool& to) {
  const std::string expected = "true or false";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* found = value.as<bool>();
                 if (found == nullptr) return refuse_value(value, path, expected, reading);
                 to = *found;
               },
               [&to] {
                 return std::optional(TomlValue{to, {}});
               }};
}

Field text_map(std::map<std::string, std::string>& to, const std::string& expected) {
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* entries = value.as<TomlValue::Table>();
                 if (entries == nullptr) return refuse_value(value, path, expected, reading);
                 for (const TomlEntry& entry : *entries) {
                   const auto* name = entry.value.as<std::string>();
                   if (name == nullptr || name->empty() || entry.key.empty() ||
                       std::max(name->size(), entry.key.size()) > kMaxTextBytes)
                     return refuse_value(entry.value, path + "." + entry.key,
                                         "a name of at most " + std::to_string(kMaxTextBytes) + " bytes", reading);
                   if (!is_printable(*name) || !is_printable(entry.key))
                     return refuse_value(entry.value, path + "." + entry.key,
                                         std::string("two names ") + kPrintableWords, reading);
                   to[entry.key] = *name;
                 }
               },
               [&to]() -> std::optional<TomlValue> {
                 if (to.empty()) return std::nullopt;
                 TomlValue::Table table;
                 for (const auto& [theirs, ours] : to) table.push_back(TomlEntry{theirs, {}, toml(ours)});
                 return TomlValue{std::move(table), {}};
               }};
}

Field address(std::string& to) {
  return text_of(to, "an address \"host:port\" with a port from 1 to 65535", is_address);
}

Field size_or_auto(std::uint64_t& to) {
  const std::string expected = "\"auto\", or a size with a unit (B, KiB, MiB, GiB, TiB) such as \"8GiB\"";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* found = value.as<std::string>();
                 const auto size = found == nullptr ? std::nullopt : parse_size(*found);
                 if (found != nullptr && *found == "auto")
                   to = 0;
                 else if (size && *size > 0)
                   to = *size;
                 else
                   refuse_value(value, path, expected, reading);
               },
               [&to] { return std::optional(toml(to == 0 ? std::string("auto") : with_unit(to, kSizes, "0B"))); }};
}

Field duration(Duration& to, Duration least, Duration most) {
  const std::string expected = "a duration from " + quoted(toml_duration(least)) + " to " +
                               quoted(toml_duration(most)) + ", with a unit (ms, s, m, h)";
  return Field{expected,
               [&to, expected, least, most](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* found = value.as<std::string>();
                 const auto parsed = found == nullptr ? std::nullopt : parse_duration(*found);
                 if (!parsed || *parsed < least || *parsed > most) return refuse_value(value, path, expected, reading);
                 to = *parsed;
               },
               [&to] { return std::optional(toml(toml_duration(to))); }};
}

Field real(double& to, Range range) {
  const std::string expected = range_text(range);
  return Field{expected,
               [&to, expected, range](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* whole = value.as<std::int64_t>();
                 const auto* fraction = value.as<double>();
                 const double number = whole != nullptr      ? static_cast<double>(*whole)
                                       : fraction != nullptr ? *fraction
                                                             : std::nan("");
                 if (!is_in(number, range)) return refuse_value(value, path, expected, reading);
                 if (!fits_float(number))
                   return refuse_value(
                       value, path,
                       expected + " that fits a 32-bit float (0, or an absolute value from 1.2e-38 to 3.4e+38)",
                       reading);
                 to = number;
               },
               [&to] { return std::optional(toml(to)); }};
}

Field reals(std::vector<double>& to, Range range) {
  const std::string expected = "a list, each of it " + range_text(range);
  return Field{expected,
               [&to, expected, range](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* items = value.as<TomlValue::Array>();
                 if (items == nullptr) return refuse_value(value, path, expected, reading);
                 std::vector<double> numbers(items->size());
                 const std::size_t problems = reading.problems.size();
                 for (std::size_t i = 0; i < numbers.size(); ++i)
                   real(numbers[i], range).read((*items)[i], path + "[" + std::to_string(i) + "]", reading);
                 if (reading.problems.size() == problems) to = std::move(numbers);
               },
               [&to] {
                 TomlValue::Array items;
                 for (const double number : to) items.push_back(toml(number));
                 return std::optional(TomlValue{std::move(items), {}});
               }};
}

Field integers(std::vector<std::uint32_t>& to, std::int64_t least, std::int64_t most, std::size_t most_items) {
  const std::string expected = "a list of integers, each from " + std::to_string(least) + " to " + std::to_string(most);
  return Field{
      expected,
      [&to, expected, least, most, most_items](const TomlValue& value, const std::string& path, Reading& reading) {
        const auto* items = value.as<TomlValue::Array>();
        if (items == nullptr) return refuse_value(value, path, expected, reading);
        if (items->size() > most_items)
          return refuse_value(value, path, expected + ", and at most " + std::to_string(most_items) + " of them",
                              reading);
        std::vector<std::uint32_t> numbers;
        for (const TomlValue& item : *items) {
          const auto* number = item.as<std::int64_t>();
          if (number == nullptr || *number < least || *number > most)
            return refuse_value(item, path + "[" + std::to_string(numbers.size()) + "]",
                                internal::integer_range(least, most), reading);
          numbers.push_back(static_cast<std::uint32_t>(*number));
        }
        to = std::move(numbers);
      },
      [&to] {
        TomlValue::Array items;
        for (std::uint32_t number : to) items.push_back(toml(std::int64_t{number}));
        return std::optional(TomlValue{std::move(items), {}});
      }};
}

std::vector<KeyDoc> describe(const Keys& keys) {
  std::vector<KeyDoc> docs;
  for (const Key& key : keys) {
    if (!key.field.is_in_this_version) continue;
    docs.push_back(KeyDoc{key.name, key.field.expected, key.doc, key.field.is_required, !key.field.below.empty()});
    for (KeyDoc doc : key.field.below) {
      doc.name = key.name + "." + doc.name;
      docs.push_back(std::move(doc));
    }
  }
  return docs;
}

std::vector<std::string> names_of(const Keys& keys) {
  std::vector<std::string> names;
  for (KeyDoc& doc : describe(keys)) names.push_back(std::move(doc.name));
  return names;
}

Field section(Keys keys) {
  std::vector<KeyDoc> below = describe(keys);
  auto shared = std::make_shared<const Keys>(std::move(keys));  // both functions below use the rows
  return Field{"a table",
               [shared](const TomlValue& value, const std::string& path, Reading& reading) {
                 if (value.as<TomlValue::Table>() == nullptr) return refuse_value(value, path, "a table", reading);
                 read_table(*shared, value, path + ".", reading);
               },
               [shared]() -> std::optional<TomlValue> {
                 return TomlValue{write_table(*shared), {}};
               },
               false,
               true,
               std::move(below)};
}

Field not_in_this_version(std::optional<std::string> fixed) {
  return Field{fixed ? config::quoted(*fixed) : "nothing",
               [fixed](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* word = value.as<std::string>();
                 if (fixed && word != nullptr && *word == *fixed) return;
                 reading.refuse(value.at, path,
                                fixed ? path + " = " + to_toml(value) + " is not in this version; expected " +
                                            config::quoted(*fixed) + ", or leave it out"
                                      : path + " is not in this version; leave it out");
               },
               [] { return std::optional<TomlValue>(); }, false, false};
}

Field required(Field field) {
  field.is_required = true;
  return field;
}

std::optional<std::uint64_t> parse_size(const std::string& text) {
  return parse_with_unit(text, kSizes);
}

std::optional<Duration> parse_duration(const std::string& text) {
  const auto nanoseconds = parse_with_unit(text, kTimes);
  if (!nanoseconds) return std::nullopt;
  return Duration(static_cast<Duration::rep>(*nanoseconds));
}

std::optional<double> parse_number(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !fits_float(number)) return std::nullopt;
  return number;
}

std::string toml_duration(Duration value) {
  return with_unit(static_cast<std::uint64_t>(value.count()), kTimes, "0s");
}

TomlValue toml(std::string value) {
  return TomlValue{std::move(value), {}};
}
TomlValue toml(std::int64_t value) {
  return TomlValue{value, {}};
}
TomlValue toml(double value) {
  return TomlValue{value, {}};
}

namespace internal {

std::string integer_range(std::int64_t least, std::int64_t most) {
  if (most == std::numeric_limits<std::int64_t>::max()) return "an integer of at least " + std::to_string(least);
  return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
}

std::string list_of_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(words[i]);
  return text;
}

void read_choice(const TomlValue& value, const std::string& path, const std::vector<std::string>& words,
                 const std::vector<std::string>& later, Reading& reading,
                 const std::function<void(std::size_t)>& store) {
  const auto* found = value.as<std::string>();
  if (found == nullptr) return refuse_value(value, path, list_of_words(words), reading);
  const auto word = std::find(words.begin(), words.end(), *found);
  if (word != words.end()) return store(static_cast<std::size_t>(word - words.begin()));
  if (std::find(later.begin(), later.end(), *found) != later.end())
    return reading.refuse(value.at, path,
                          path + " = " + quoted(*found) + " is not in this version; expected " + list_of_words(words));
  refuse_value(value, path, list_of_words(words), reading, nearest_word(*found, words));
}

}  // namespace internal

}  // namespace disttrain::config
