// Reads the chief's JSON. No function fails: if a key is missing, null or of another type, it returns "", NaN, false
// or an empty list.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "common/printable.h"

namespace disttrain::cli {

using Json = nlohmann::ordered_json;

inline std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

inline double number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : std::nan("");
}

inline bool flag_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

inline Json list_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : Json::array();
}

// Formats JSON as one line for stdout. Replaces bytes that aren't UTF-8. If a text has characters that aren't printable
// (printable.h), all characters beyond ASCII are written as \uNNNN.
inline std::string line_of(const Json& json) {
  std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!is_printable(line)) line = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return line;
}

}  // namespace disttrain::cli
