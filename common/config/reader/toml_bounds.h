// Bounds on a TOML document, checked before the TOML library parses it. The library makes a table for each part of a
// dotted key and frees them recursively: 60,000 parts in one key crash the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace disttrain::config {

inline constexpr std::size_t kMaxTomlBytes = 1 << 20;
inline constexpr std::size_t kMaxTomlKeyParts = 16;    // of one key or [section]: "train.optimizer.rule" has 3
inline constexpr std::size_t kMaxTomlNesting = 16;     // of arrays and inline tables in each other
inline constexpr std::size_t kMaxTomlItems = 1 << 16;  // keys, sections and elements of arrays

// Where a document exceeds a bound. Line and column count from 1; 0: the document as a whole.
struct TomlExcess {
  std::string what;  // "a key has more than 16 parts"
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// The first excess. One pass without recursion, over any text.
std::optional<TomlExcess> find_excess(const std::string& text);

}  // namespace disttrain::config
