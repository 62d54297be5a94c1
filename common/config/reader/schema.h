// Tables that describe the keys of a configuration file. Each row has the key's name, its type and range, the variable
// that it fills, and a short description. The present value of the variable is the key's default. read_table() uses the
// rows to read a file into the variables and to collect every problem. write_table() uses them to write the values
// back. The rows are in cluster_keys.cc and job_keys.cc.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/config/reader/problems.h"
#include "common/config/reader/toml_bounds.h"
#include "common/config/reader/toml_tree.h"
#include "common/time.h"

namespace disttrain::config {

// The state of reading a file.
struct Reading {
  // At most this many problems are stored. Further ones are only counted, because a file can have as many problems as
  // bytes.
  static constexpr std::size_t kMaxProblems = 100;

  std::vector<Problem> problems;
  std::size_t left_out = 0;
  // place of the value of each key in the file, by the key's full name ("train.batch_size")
  std::map<std::string, TomlPosition> given;

  bool has(const std::string& key) const { return given.count(key) != 0; }
  // Returns true if the value of this key, or an element of its list, was refused. Its variable then still has the
  // default.
  bool is_refused(const std::string& key) const;
  // Returns true if this section has an unknown key. That key may be a misspelt name of a key that seems to be missing.
  bool has_unknown(const std::string& section) const;
  // Returns false, and counts a problem as left out, if no further problem may be stored.
  bool has_room();
  // Adds a problem with this message. The place is that of the key, else of its section, else of the file.
  void refuse(const std::string& key, const std::string& sentence);
  void refuse(const TomlPosition& at, const std::string& key, const std::string& sentence);
};

// The description of a row, without its variable.
struct KeyDoc {
  std::string name;  // "train.optimizer.rule"
  std::string expected;
  std::string doc;
  bool is_required;
  bool is_table;
};

// The type and range of a key, with a reference to the variable that it fills. The variable must outlive the field.
struct Field {
  std::string expected;  // "an integer from 1 to 64"
  // Stores the value in the variable. If the value is bad, adds a problem and stores nothing.
  std::function<void(const TomlValue& value, const std::string& path, Reading& reading)> read;
  std::function<std::optional<TomlValue>()> write;  // this function returns none if there is nothing to write
  bool is_required = false;
  bool is_in_this_version = true;
  std::vector<KeyDoc> below = {};  // for a table: all keys in it, at any depth
};

struct Key {
  std::string name;
  Field field;
  std::string doc;
};
using Keys = std::vector<Key>;

// Reads `table` into the variables of `keys`. Unknown keys and missing required keys are problems too. `path` is "" or
// ends with a dot.
void read_table(const Keys& keys, const TomlValue& table, const std::string& path, Reading& reading);
TomlValue::Table write_table(const Keys& keys);

// Describes all keys, at any depth and in order. Leaves out keys that this version doesn't support.
std::vector<KeyDoc> describe(const Keys& keys);
// Returns the full names of all keys, such as "name" and "section.name".
std::vector<std::string> names_of(const Keys& keys);
// If an unknown key exists in another section, suggests that section's key.
void suggest_other_sections(const std::vector<std::string>& all_names, Reading& reading);

// The types.

// Completes "a name": what is_printable() asks of it.
inline constexpr char kPrintableWords[] = "without characters that are invisible or turn the direction of the text";

Field text(std::string& to);
// A name, which may be shown to people and travels in messages: at most kMaxTextBytes, and is_printable().
Field printable_name(std::string& to);
Field text_of(std::string& to, std::string expected, std::function<bool(const std::string&)> fits);
Field address(std::string& to);         // host:port with a port from 1 to 65535; an IPv6 host as in [::1]:7100
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
Field real(double& to, Range range);  // the value must fit float32, in which the update rules compute

// T: any unsigned integer.
template <typename T>
Field integer(T& to, std::int64_t least, std::int64_t most);
// "auto" (or another word) stands for 0.
template <typename T>
Field integer_or(const std::string& word_for_zero, T& to, std::int64_t least, std::int64_t most);
Field boolean(bool& to);
// A list of `least` to `most` strings. write() leaves the key out while the list is empty.
Field texts(std::vector<std::string>& to, std::size_t most, std::size_t least = 0);
// `field`, but write() leaves the key out while `value` is empty.
Field not_if_empty(Field field, const std::string& value);
// { "key" = "value", ... }, both a printable_name() that isn't empty.
Field text_map(std::map<std::string, std::string>& to, const std::string& expected);
Field reals(std::vector<double>& to, Range range);  // each as in real()
// A list of at most `most_items`; by default as many as a file can have (kMaxTomlItems).
Field integers(std::vector<std::uint32_t>& to, std::int64_t least, std::int64_t most,
               std::size_t most_items = kMaxTomlItems);

// `later` has words that a later version will support. They are refused with a message that says so.
template <typename E>
Field choice(E& to, std::vector<std::pair<std::string, E>> words, std::vector<std::string> later = {});

// A section or an inline table.
Field section(Keys keys);
// A list of sections [[name]]. `to` gets one element for each section.
template <typename T>
Field sections(std::vector<T>& to, std::function<Keys(T&)> keys_of);

// A key or section that this version doesn't support. The file may leave it out, or set it to `fixed`, which is what
// this version does anyway.
Field not_in_this_version(std::optional<std::string> fixed = std::nullopt);

Field required(Field field);

// For fields that need code of their own: adds the problem "KEY is VALUE; expected EXPECTED".
void refuse_value(const TomlValue& value, const std::string& path, const std::string& expected, Reading& reading,
                  const std::string& nearest = "");
// Parse texts such as "256GiB" and "100ms". Return none for any other text.
std::optional<std::uint64_t> parse_size(const std::string& text);
std::optional<Duration> parse_duration(const std::string& text);
std::optional<double> parse_number(const std::string& text);  // must fit float32
// Returns true if the text is host:port with a port from 1 to 65535.
bool is_address(const std::string& text);
// Writes a duration as a file has it: "1h", "90s", "100ms". The result is exact, so parse_duration() returns the same
// duration. For messages to people, use format_duration().
std::string toml_duration(Duration duration);
TomlValue toml(std::string value);
TomlValue toml(std::int64_t value);
TomlValue toml(double value);

}  // namespace disttrain::config

#include "common/config/reader/schema_inl.h"
