// Words for a line that a shell reads: paths have spaces, and what not.
#pragma once

#include <string>

namespace disttrain {

// 'it'\''s' for it's: one word, whatever is in the text.
inline std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace disttrain
