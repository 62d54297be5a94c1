// toml++'s own limit (TOML_MAX_NESTED_VALUES) counts only arrays and inline tables, and not the parts of dotted keys.
#include "common/config/reader/toml_bounds.h"

namespace disttrain::config {

namespace {

// Counts keys, elements and nesting in a text, and skips strings and comments by TOML's rules. If the text isn't valid
// TOML, the counts after the first error may be wrong. That does no harm, because the library stops at that error.
class Scan {
 public:
  explicit Scan(const std::string& text) : text_(text) {}

  std::optional<TomlExcess> run() {
    std::optional<TomlExcess> excess;
    while (at_ < text_.size() && !excess) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        skip_line();
        continue;
      }
      excess = take(c);
      ++at_;
    }
    return excess;
  }

 private:
  std::optional<TomlExcess> take(char c) {
    switch (c) {
      case '.':
        if (++key_parts_ > kMaxTomlKeyParts)
          return excess("a key has more than " + std::to_string(kMaxTomlKeyParts) + " parts");
        return count_item();
      case '[':
      case '{':
        key_parts_ = 1;
        if (++nesting_ > kMaxTomlNesting)
          return excess("arrays and tables nest more than " + std::to_string(kMaxTomlNesting) + " deep");
        return count_item();
      case ']':
      case '}':
        key_parts_ = 1;
        if (nesting_ > 0) --nesting_;
        return std::nullopt;
      case '=':
      case ',':
        key_parts_ = 1;
        return count_item();
      case '\n':
        key_parts_ = 1;
        end_line();
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<TomlExcess> count_item() {
    if (++items_ <= kMaxTomlItems) return std::nullopt;
    return excess("the text has more than " + std::to_string(kMaxTomlItems) + " keys and elements");
  }

  // Moves `at_` from the opening quote to the character after the closing quote.
  void skip_string(char quote) {
    const bool has_escapes = quote == '"';
    const bool is_long = text_.compare(at_, 3, std::string(3, quote)) == 0;
    at_ += is_long ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\\' && has_escapes) {
        ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') end_line();
      } else if (c == '\n') {
        if (!is_long) return;  // isn't TOML
        end_line();
      } else if (c == quote && !is_long) {
        ++at_;
        return;
      } else if (c == quote && text_.compare(at_, 3, std::string(3, quote)) == 0) {
        at_ += 3;
        // they belong to the text
        for (int more = 0; more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;
        return;
      }
    }
  }

  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  void end_line() {
    ++line_;
    line_begin_ = at_ + 1;
  }

  TomlExcess excess(const std::string& what) const {
    return TomlExcess{what, line_, static_cast<std::uint32_t>(at_ - line_begin_ + 1)};
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
  std::size_t key_parts_ = 1;
  std::size_t nesting_ = 0;
  std::size_t items_ = 0;
};

std::optional<TomlExcess> find_control_character(const std::string& text) {
  std::uint32_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '\n') {
      ++line;
      line_begin = at + 1;
    } else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      return TomlExcess{std::string("the text has the control character 0x") + kHex[c >> 4] + kHex[c & 15] +
                            ", which TOML doesn't allow",
                        line, static_cast<std::uint32_t>(at - line_begin + 1)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<TomlExcess> find_excess(const std::string& text) {
  if (text.size() > kMaxTomlBytes)
    return TomlExcess{"the text has " + std::to_string(text.size()) + " bytes; expected at most " +
                      std::to_string(kMaxTomlBytes)};
  if (std::optional<TomlExcess> character = find_control_character(text)) return character;
  return Scan(text).run();
}

}  // namespace disttrain::config
