#include "common/bounded_json.h"

namespace disttrain {

bool is_nested_deeper(std::string_view text, int most) {
  int depth = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (is_in_string) {
      if (character == '\\') ++at;  // the escaped character doesn't end the string
      if (character == '"') is_in_string = false;
    } else if (character == '"') {
      is_in_string = true;
    } else if (character == '[' || character == '{') {
      if (++depth > most) return true;
    } else if (character == ']' || character == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace disttrain
