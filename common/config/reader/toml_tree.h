// A TOML document as a tree of values with their positions. Only toml_tree.cc uses the TOML library, and it catches the
// library's exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"

namespace disttrain::config {

// Where a text comes from: a file, or a --set of the command line.
struct TomlSource {
  std::string name;  // the path as the user wrote it, or the whole "--set train.mode=sync"
  std::string text;  // needed to show a line in an error
};

// Lines and columns count from 1. A line of 0 means the whole source.
struct TomlPosition {
  std::shared_ptr<const TomlSource> source;  // shared, because a tree can have values from several sources
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct TomlEntry;
struct TomlDate {};  // a date or time; no key accepts one

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

// Returns the entry with this key, or null.
const TomlEntry* find(const TomlValue::Table& table, const std::string& key);
TomlEntry* find(TomlValue::Table& table, const std::string& key);

struct TomlSyntaxError {
  std::string what;  // "isn't TOML: ...", or the bound of toml_bounds.h that the text exceeds
  TomlPosition at;
};

// Parses a whole document into a table. Checks the bounds of toml_bounds.h first.
tl::expected<TomlValue, TomlSyntaxError> parse_toml(std::shared_ptr<const TomlSource> source);

// Writes a value as TOML on one line: "a string", [1, 2], { key = 1 }. The result parses to the same value.
std::string to_toml(const TomlValue& value);

// Writes a table as a document: first the plain keys, then the [sections] and [[lists of sections]]. Tables inside
// the sections are written inline.
std::string to_toml_document(const TomlValue::Table& table);

// If a control character begins at text[i], returns its length in bytes, else 0. Terminals and file systems interpret
// such characters. The text is UTF-8.
std::size_t control_character_at(const std::string& text, std::size_t i);

// Writes a text as a TOML string, with control characters escaped.
std::string quoted(const std::string& text);
std::string to_toml(double value);

}  // namespace disttrain::config
