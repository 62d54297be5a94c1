// A TOML document as a plain tree with positions. toml_tree.cc is the only file that knows the TOML library, and its
// exceptions stop there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"

namespace disttrain::config {

// Where text came from: a file, or one --set of the command line.
struct TomlSource {
  std::string name;  // path as the user wrote it, or "--set train.mode=sync"
  std::string text;  // for showing the line
};

// line and column count from 1; 0: not known (the source as a whole).
struct TomlPosition {
  std::shared_ptr<const TomlSource> source;  // shared: a merged tree has several, and outlives their readers
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct TomlEntry;
struct TomlDate {};  // dates and times: no key of ours is one

struct TomlValue {
  using Array = std::vector<TomlValue>;
  using Table = std::vector<TomlEntry>;  // in the order of the file, keys unique

  std::variant<bool, std::int64_t, double, std::string, TomlDate, Array, Table> value;
  TomlPosition at;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  template <typename T>
  T* as() {
    return std::get_if<T>(&value);
  }
};

struct TomlEntry {
  std::string key;
  TomlPosition key_at;
  TomlValue value;
};

// The entry with that key, or null.
const TomlEntry* find(const TomlValue::Table& table, const std::string& key);
TomlEntry* find(TomlValue::Table& table, const std::string& key);

struct TomlSyntaxError {
  std::string what;  // "isn't TOML: ..." or what bound the text exceeds (toml_bounds.h)
  TomlPosition at;
};

// The whole document as a table. Its depth is bounded by that of toml_bounds.h.
tl::expected<TomlValue, TomlSyntaxError> parse_toml(std::shared_ptr<const TomlSource> source);

// As TOML on one line: "a string", [1, 2], { key = 1 }. Parses back to the same value.
std::string to_toml(const TomlValue& value);

// A document: plain keys first, then [sections] and [[lists of sections]], whose own tables are inline.
std::string to_toml_document(const TomlValue::Table& table);

// The bytes of the control character that begins at text[i]: terminals and paths take those for commands and ends.
// 0: none does. Text is UTF-8.
std::size_t control_character_at(const std::string& text, std::size_t i);

// As a TOML string, control characters escaped.
std::string quoted(const std::string& text);
std::string to_toml(double value);

}  // namespace disttrain::config
