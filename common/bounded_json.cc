// The nesting is counted before nlohmann's parser runs. A message of 4 MB of brackets ended workerd, and a sidecar of
// 64 MB of brackets took 4.5 GB. A callback of the parser could count too, but the reader of safetensors already has a
// callback for another check.
#include "common/bounded_json.h"

namespace disttrain {

bool exceeds_json_bounds(std::string_view text, int most_nesting, std::size_t most_values) {
  int depth = 0;
  std::size_t values = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (is_in_string) {
      if (character == '\\') ++at;  // the escaped character doesn't end the string
      if (character == '"') is_in_string = false;
    } else if (character == '"') {
      is_in_string = true;
    } else if (character == '[' || character == '{') {
      if (++depth > most_nesting || ++values > most_values) return true;
    } else if (character == ']' || character == '}') {
      --depth;
    } else if (character == ',') {
      if (++values > most_values) return true;
    }
  }
  return false;
}

}  // namespace disttrain
