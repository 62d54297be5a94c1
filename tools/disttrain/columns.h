// Measures and cuts text for a terminal. Each UTF-8 character counts as one column, even if the terminal shows it in
// two columns or in none.
#pragma once

#include <cstddef>
#include <string>

namespace disttrain::cli {

inline bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

inline std::size_t columns_of(const std::string& text) {
  std::size_t columns = 0;
  for (char byte : text) columns += begins_letter(byte) ? 1 : 0;
  return columns;
}

// Returns the first `columns` columns of `text`.
inline std::string cut(const std::string& text, std::size_t columns) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_letter(text[i]) && columns-- == 0) return text.substr(0, i);
  return text;
}

// Replaces control characters by "?", because a terminal would execute them. If `utf8` is false, also replaces all
// bytes that aren't ASCII.
inline std::string plain(std::string text, bool utf8) {
  for (char& byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x20 || code == 0x7F || (code >= 0x80 && !utf8)) byte = '?';
  }
  return text;
}

}  // namespace disttrain::cli
