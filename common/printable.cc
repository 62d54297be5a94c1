// On the wire and in the status, an error stays one line in which a newline is shown as `\n`, because a text from a
// stranger must not begin a line of its own in a log or event. Only a program that shows the text to a person unfolds
// it: the verbs, and the chief's own log. A field with a list of lines was considered. It would have gone through six
// messages and the journal for the same picture.
#include "common/printable.h"

#include <algorithm>
#include <cstdint>

namespace disttrain {
namespace {

// The first character of a text, and its length in bytes. The length is 0 if the text doesn't begin with valid UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xc2 && lead < 0xe0   ? 2
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xf0 && lead < 0xf5 ? 4
                                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

// Returns true if a character makes a text look different from its contents: line and paragraph separators, marks that
// change the writing direction, and the byte order mark. These are shown as escapes.
bool misleads(std::uint32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
         code == 0xfeff;
}

bool commands(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

void append_hex(std::string& to, std::uint32_t value, int digits) {
  constexpr char kHex[] = "0123456789abcdef";
  for (int digit = digits - 1; digit >= 0; --digit) to += kHex[value >> (4 * digit) & 15];
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      result += "\\x";
      append_hex(result, static_cast<unsigned char>(text[0]), 2);
    } else if (character.code == '\n') {
      result += lines == Lines::kMany ? "\n" : "\\n";
    } else if (character.code == '\t') {
      result += ' ';
    } else if (commands(character.code)) {
      result += "\\x";
      append_hex(result, character.code, 2);
    } else if (misleads(character.code)) {
      result += "\\u";
      append_hex(result, character.code, 4);
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_of(text);
    if (character.bytes == 0 || commands(character.code) || misleads(character.code)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string unfolded(std::string_view text) {
  constexpr std::string_view kFolded = "\\n  ";
  std::string result;
  for (std::size_t at = text.find(kFolded); at != std::string_view::npos; at = text.find(kFolded)) {
    result.append(text.substr(0, at)).append("\n  ");
    text.remove_prefix(at + kFolded.size());
  }
  return result.append(text);
}

std::string indented(std::string_view text, std::size_t blanks) {
  std::string result;
  result.reserve(text.size());
  for (char c : text) {
    result += c;
    if (c == '\n') result.append(blanks, ' ');
  }
  return result;
}

}  // namespace disttrain
