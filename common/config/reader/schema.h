// Tables of keys. A row holds a key's name, type and range, the variable it fills (its present value is the default)
// and its meaning. One walk over a table reads a file into the variables and collects every problem; another walk
// writes the values back. The rows are in cluster_keys.cc and job_keys.cc.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/config/reader/problems.h"
#include "common/config/reader/toml_tree.h"
#include "common/time.h"

namespace disttrain::config {

// The state of reading a file.
struct Reading {
  // A file can have as many problems as bytes. Problems beyond this number are only counted.
  static constexpr std::size_t kMaxProblems = 100;

  std::vector<Problem> problems;
  std::size_t left_out = 0;
  std::map<std::string, TomlPosition> given;  // "train.batch_size" -> the place of its value, for all keys in the file

  bool has(const std::string& key) const { return given.count(key) != 0; }
  // The key's value was refused, so its variable still has the default.
  bool is_refused(const std::string& key) const;
  // False: don't add the problem; it was counted.
  bool has_room();
  // Adds a problem with a whole sentence, at the key's place (or its section's, or the file's).
  void refuse(const std::string& key, const std::string& sentence);
  void refuse(const TomlPosition& at, const std::string& key, const std::string& sentence);
};

// A row without the variable it is bound to.
struct KeyDoc {
  std::string name;  // "train.optimizer.rule"
  std::string expected;
  std::string doc;
  bool is_required;
  bool is_table;
};

// A type with its range, bound to the variable that it fills. Bound references must outlive the field.
struct Field {
  std::string expected;  // "an integer from 1 to 64"
  // Stores the value, or adds a problem and stores nothing.
  std::function<void(const TomlValue& value, const std::string& path, Reading& reading)> read;
  std::function<std::optional<TomlValue>()> write;  // none: nothing to write
  bool is_required = false;
  bool is_in_this_version = true;
  std::vector<KeyDoc> below = {};  // tables: their keys and those below them
};

struct Key {
  std::string name;
  Field field;
  std::string doc;
};
using Keys = std::vector<Key>;

// Reads `table` by `keys`; unknown and missing keys are problems too. `path` is "" or ends with a dot.
void read_table(const Keys& keys, const TomlValue& table, const std::string& path, Reading& reading);
TomlValue::Table write_table(const Keys& keys);

// Every row and those below it, in order, without keys that aren't in this version.
std::vector<KeyDoc> describe(const Keys& keys);
// "name", and "section.name" for keys below.
std::vector<std::string> names_of(const Keys& keys);
// For an unknown key that exists in another section, names that section.
void suggest_other_sections(const std::vector<std::string>& all_names, Reading& reading);

// The types.

Field text(std::string& to);
Field text_of(std::string& to, std::string expected, std::function<bool(const std::string&)> fits);
Field address(std::string& to);         // host:port, port 1 to 65535; IPv6 as [::1]:7100
Field size_or_auto(std::uint64_t& to);  // "auto" = 0, or "8GiB"
Field duration(Duration& to, Duration least, Duration most);

struct Range {
  double low;
  bool low_included;
  double high;
  bool high_included;
};
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr Range above(double low) {
  return {low, false, kNoLimit, true};
}
constexpr Range at_least(double low) {
  return {low, true, kNoLimit, true};
}
Field real(double& to, Range range);  // must fit float32, in which the rules compute

// T: any unsigned integer.
template <typename T>
Field integer(T& to, std::int64_t least, std::int64_t most);
// "auto" (or another word) stands for 0.
template <typename T>
Field integer_or(const std::string& word_for_zero, T& to, std::int64_t least, std::int64_t most);
Field boolean(bool& to);
// { "key" = "value", ... }, both not empty.
Field text_map(std::map<std::string, std::string>& to);
Field integers(std::vector<std::uint32_t>& to, std::int64_t least, std::int64_t most);

// `later`: words that are refused as not in this version.
template <typename E>
Field choice(E& to, std::vector<std::pair<std::string, E>> words, std::vector<std::string> later = {});

// A section or an inline table.
Field section(Keys keys);
// [[name]]: one element of `to` for each section.
template <typename T>
Field sections(std::vector<T>& to, std::function<Keys(T&)> keys_of);

// A key or section that this version doesn't support. It may be given only with the value `fixed`, which names what
// this version does anyway; any other value is a problem.
Field not_in_this_version(std::optional<std::string> fixed = std::nullopt);

Field required(Field field);

// For fields that need code of their own.
void refuse_value(const TomlValue& value, const std::string& path, const std::string& expected, Reading& reading,
                  const std::string& nearest = "");
// "256GiB", "100ms" and so on; none for other text.
std::optional<std::uint64_t> parse_size(const std::string& text);
std::optional<Duration> parse_duration(const std::string& text);
std::optional<double> parse_number(const std::string& text);  // must fit float32
// host:port with a host, and a port from 1 to 65535.
bool is_address(const std::string& text);
// "1h", "90s", "100ms": as a file has it. Exact, so that parse_duration() gives the same; format_duration() is for
// people.
std::string toml_duration(Duration duration);
TomlValue toml(std::string value);
TomlValue toml(std::int64_t value);
TomlValue toml(double value);

}  // namespace disttrain::config

#include "common/config/reader/schema_inl.h"
