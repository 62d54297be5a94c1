// Bounds on a TOML document. They are checked before the TOML library parses it, because the library makes a nested
// table for each part of a dotted key and frees these tables recursively. A key of 60,000 parts would crash the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace disttrain::config {

inline constexpr std::size_t kMaxTomlBytes = 1 << 20;
// number of parts of a key or [section]; "train.optimizer.rule" has 3
inline constexpr std::size_t kMaxTomlKeyParts = 16;
inline constexpr std::size_t kMaxTomlNesting = 16;     // depth of arrays and inline tables inside each other
inline constexpr std::size_t kMaxTomlItems = 1 << 16;  // number of keys, sections and elements of arrays

// The place where a document exceeds a bound. Lines and columns count from 1. A line of 0 means the whole document.
struct TomlExcess {
  std::string what;  // "a key has more than 16 parts", "the text has the control character 0x1f"
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// Returns the first place where the text exceeds a bound or has a control character, which TOML allows nowhere and
// which makes an assertion of the library fail; or none. Works without recursion, on any text.
std::optional<TomlExcess> find_excess(const std::string& text);

}  // namespace disttrain::config
