// A TOML document as a plain tree with positions. Only toml_tree.cc uses the TOML library and catches its exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"

namespace disttrain::config {

// The source of a text: a file, or one --set of the command line.
struct TomlSource {
  std::string name;  // path as the user wrote it, or "--set train.mode=sync"
  std::string text;  // for showing the line
};

// Line and column count from 1; 0: unknown (the source as a whole).
struct TomlPosition {
  std::shared_ptr<const TomlSource> source;  // shared: a merged tree has several sources and outlives their readers
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct TomlEntry;
struct TomlDate {};  // a date or time; no key takes one

struct TomlValue {
  using Array = std::vector<TomlValue>;
  using Table = std::vector<TomlEntry>;  // in the order of the file; keys are unique

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

// Parses the whole document into a table. toml_bounds.h bounds its depth.
tl::expected<TomlValue, TomlSyntaxError> parse_toml(std::shared_ptr<const TomlSource> source);

// The value as TOML on one line: "a string", [1, 2], { key = 1 }. Parses to the same value.
std::string to_toml(const TomlValue& value);

// The table as a document: plain keys first, then [sections] and [[lists of sections]]; tables within those are inline.
std::string to_toml_document(const TomlValue::Table& table);

// Length in bytes of the control character that begins at text[i], 0 if none does: terminals and paths interpret such
// characters. Text is UTF-8.
std::size_t control_character_at(const std::string& text, std::size_t i);

// The text as a TOML string, with control characters escaped.
std::string quoted(const std::string& text);
std::string to_toml(double value);

}  // namespace disttrain::config
