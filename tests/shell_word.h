// Quotes a text for a line that a shell reads, because paths may have spaces and other special characters.
#pragma once

#include <string>

namespace disttrain {

// Returns the text in single quotes, so that the shell takes it as one word. For example, it's becomes 'it'\''s'.
inline std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace disttrain
