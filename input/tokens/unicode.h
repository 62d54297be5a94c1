// Characters of UTF-8, and what ICU knows about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain::input {

using CodePoint = std::int32_t;

// The first byte that isn't a part of valid UTF-8. Nothing: the text is valid.
std::optional<std::size_t> find_invalid(std::string_view text);

// The bytes of the character at `at` of a valid text, which is longer than `at`.
inline std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return bytes < text.size() - at ? bytes : text.size() - at;
}

CodePoint character_at(std::string_view text, std::size_t at);
void append(CodePoint character, std::string& to);

bool is_whitespace(CodePoint c);   // Unicode's White_Space
bool is_punctuation(CodePoint c);  // Unicode's P, and ASCII's
bool is_numeric(CodePoint c);      // Unicode's N
bool is_other(CodePoint c);        // Unicode's C
bool is_mark(CodePoint c);         // Unicode's M
bool is_nonspacing_mark(CodePoint c);
bool is_chinese(CodePoint c);  // in one of the blocks of CJK ideographs, as BERT lists them

// Replaces each character by its small letter, without regard to its neighbours.
std::string lowercase(std::string_view text);

enum class UnicodeForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };
// Nothing: ICU has no data or no memory.
std::optional<std::string> normalised(std::string_view text, UnicodeForm form);

// `text` with keep(character) only.
template <typename Keep>
std::string filtered(std::string_view text, const Keep& keep) {
  std::string to;
  to.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    if (keep(character_at(text, at))) to += text.substr(at, bytes);
    at += bytes;
  }
  return to;
}

}  // namespace disttrain::input
