#include "common/bounded_json.h"

#include <set>
#include <string>
#include <vector>

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

namespace {

class KeyFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool has_found() const { return has_found_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& key) override {
    has_found_ = !keys_.back().insert(key).second;
    return !has_found_;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the open objects, the innermost last
  bool has_found_ = false;
};

}  // namespace

bool has_key_twice(std::string_view text) {
  KeyFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  return finder.has_found();
}

}  // namespace disttrain
