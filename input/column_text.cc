#include "input/column_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>

#include "input/number_text.h"
#include "input/record_block.h"
#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

constexpr CodePoint kByteOrderMark = 0xFEFF;

// Whether a blank begins at byte `at` of the text. A byte that isn't UTF-8 begins none.
bool is_blank_at(std::string_view text, std::size_t at) {
  const CodePoint c = character_at(text, at);
  return c >= 0 && (c == kByteOrderMark || is_whitespace(c));
}

// Where the last character of the text begins, which isn't empty.
std::size_t begin_of_last(std::string_view text) {
  constexpr std::size_t kMostBytes = 4;  // of a character
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < kMostBytes && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

bool is_nan(std::string_view text) {
  text = without_sign(text);
  return text == "nan" || text == "NaN" || text == "NAN";
}

}  // namespace

std::string_view strip_blanks(std::string_view text) {
  while (!text.empty() && is_blank_at(text, 0)) text.remove_prefix(character_bytes(text, 0));
  while (!text.empty()) {
    const std::size_t last = begin_of_last(text);
    const bool is_whole = character_bytes(text, last) == text.size() - last;
    if (!is_whole || !is_blank_at(text, last)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

bool is_missing(std::string_view text, const std::vector<std::string>& missing) {
  if (text.empty() || is_nan(text)) return true;
  for (const std::string& word : missing)
    if (text == word) return true;
  return false;
}

bool is_infinity(std::string_view text) {
  text = without_sign(text);
  static constexpr std::string_view kWords[] = {"inf", "infinity"};
  return std::any_of(std::begin(kWords), std::end(kWords), [text](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a | 0x20) == b; });  // in any case
  });
}

std::optional<float> number_of_text(std::string_view text, const std::vector<std::string>& missing) {
  text = without_blanks(text);
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  if (text.empty()) return kNone;
  for (const std::string& word : missing)
    if (text == word) return kNone;
  const std::optional<float> number = float_or_infinity_in(text);
  return number || !is_nan(text) ? number : kNone;
}

std::string wrong_number(std::string_view text, const std::string& column) {
  return shown_text(text) + " in column '" + column +
         "', expected a finite number: correct the record, add the word to data.missing, or give the column the kind "
         "\"category\"";
}

std::string_view word_of(std::string_view text, const std::vector<std::string>& missing) {
  text = without_blanks(text);
  return is_missing(text, missing) ? std::string_view() : text;
}

std::string_view label_of(std::string_view text, const std::string& strip, const std::vector<std::string>& missing) {
  text = word_of(text, missing);
  const std::size_t size = text.size();
  while (!text.empty() && strip.find(text.back()) != std::string::npos) text.remove_suffix(1);
  return text.size() < size ? word_of(text, missing) : text;
}

std::optional<std::string> wrong_bytes(std::string_view word) {
  // Nearly all words are ASCII.
  bool is_ascii = true;
  bool has_nul = false;
  for (const char c : word) {
    is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
    has_nul = has_nul || c == '\0';
  }
  if (has_nul) return "has a NUL byte, expected text: is the file damaged, or is it UTF-16? Convert it to UTF-8";
  if (is_ascii) return std::nullopt;
  const std::optional<std::size_t> invalid = find_invalid(word);
  if (!invalid) return std::nullopt;
  char hex[3];
  std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned>(static_cast<unsigned char>(word[*invalid])));
  return std::string("has the byte 0x") + hex +
         ", which isn't UTF-8: convert the file, for example by `iconv -f LATIN1 -t UTF-8`, or write binary values as "
         "text";
}

}  // namespace disttrain::input
