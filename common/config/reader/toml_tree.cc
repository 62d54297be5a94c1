#include "common/config/reader/toml_tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

// Some texts that aren't TOML make an assertion of the library fail. That would end the process; parse_toml() catches
// this exception instead.
[[noreturn]] static void fail_toml_assertion() {
  throw std::logic_error("an assertion of toml++ failed");
}
#define TOML_ASSERT(condition)                 \
  do {                                         \
    if (!(condition)) ::fail_toml_assertion(); \
  } while (false)
#include <toml++/toml.h>

#include "common/config/reader/toml_bounds.h"

namespace disttrain::config {

namespace {

TomlPosition position(const std::shared_ptr<const TomlSource>& source, const toml::source_position& at) {
  return TomlPosition{source, at.line, at.column};
}

// find_excess() bounds the recursion.
TomlValue convert(const toml::node& node, const std::shared_ptr<const TomlSource>& source) {
  TomlValue result;
  result.at = position(source, node.source().begin);
  if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    result.value = real->get();
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* array = node.as_array()) {
    TomlValue::Array items;
    for (const toml::node& item : *array) items.push_back(convert(item, source));
    result.value = std::move(items);
  } else if (const auto* table = node.as_table()) {
    TomlValue::Table entries;
    for (const auto& [key, value] : *table)
      entries.push_back(
          TomlEntry{std::string(key.str()), position(source, key.source().begin), convert(value, source)});
    std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
      return std::pair(a.key_at.line, a.key_at.column) < std::pair(b.key_at.line, b.key_at.column);
    });
    result.value = std::move(entries);
  } else {
    result.value = TomlDate{};
  }
  return result;
}

bool is_bare(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

std::string key_text(const std::string& key) {
  return is_bare(key) ? key : quoted(key);
}

std::string line_of(const TomlEntry& entry) {
  return key_text(entry.key) + " = " + to_toml(entry.value);
}

// Returns true if the value is written as [[sections]]: it is a list of tables and not empty.
bool is_list_of_tables(const TomlValue& value) {
  const auto* array = value.as<TomlValue::Array>();
  return array != nullptr && !array->empty() && std::all_of(array->begin(), array->end(), [](const TomlValue& item) {
           return item.as<TomlValue::Table>() != nullptr;
         });
}

}  // namespace

const TomlEntry* find(const TomlValue::Table& table, const std::string& key) {
  const auto found = std::find_if(table.begin(), table.end(), [&key](const TomlEntry& e) { return e.key == key; });
  return found == table.end() ? nullptr : &*found;
}

TomlEntry* find(TomlValue::Table& table, const std::string& key) {
  return const_cast<TomlEntry*>(find(std::as_const(table), key));
}

tl::expected<TomlValue, TomlSyntaxError> parse_toml(std::shared_ptr<const TomlSource> source) {
  if (const std::optional<TomlExcess> excess = find_excess(source->text))
    return tl::unexpected(TomlSyntaxError{excess->what, TomlPosition{source, excess->line, excess->column}});
  try {
    return convert(toml::parse(source->text, source->name), source);
  } catch (const toml::parse_error& error) {
    return tl::unexpected<TomlSyntaxError>(
        TomlSyntaxError{"isn't TOML: " + std::string(error.description()), position(source, error.source().begin)});
  } catch (const std::logic_error&) {
    return tl::unexpected<TomlSyntaxError>(
        TomlSyntaxError{"isn't TOML, and toml++ can't say where", TomlPosition{source, 0, 0}});
  }
}

std::size_t control_character_at(const std::string& text, std::size_t i) {
  const auto c = static_cast<unsigned char>(text[i]);
  if (c < 0x20 || c == 0x7f) return 1;
  if (c != 0xc2 || i + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[i + 1]);  // U+0080 to U+009F in UTF-8
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += static_cast<char>(c);
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (const std::size_t bytes = control_character_at(text, i); bytes != 0) {
      constexpr char kHex[] = "0123456789ABCDEF";
      i += bytes - 1;
      const auto last = static_cast<unsigned char>(text[i]);
      result += std::string("\\u00") + kHex[last >> 4] + kHex[last & 15];
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + '"';
}

std::string to_toml(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  // the shortest text that parses to the same value
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string to_toml(const TomlValue& value) {
  struct Writer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return to_toml(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const TomlDate&) const { return "\"a date\""; }
    std::string operator()(const TomlValue::Array& items) const {
      std::string text = "[";
      for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + to_toml(items[i]);
      return text + "]";
    }
    std::string operator()(const TomlValue::Table& entries) const {
      if (entries.empty()) return "{}";
      std::string text = "{ ";
      for (std::size_t i = 0; i < entries.size(); ++i) text += (i == 0 ? "" : ", ") + line_of(entries[i]);
      return text + " }";
    }
  };
  return std::visit(Writer{}, value.value);
}

std::string to_toml_document(const TomlValue::Table& table) {
  std::ostringstream plain;
  std::ostringstream sections;
  for (const TomlEntry& entry : table) {
    if (const auto* section = entry.value.as<TomlValue::Table>()) {
      sections << "\n[" << key_text(entry.key) << "]\n";
      for (const TomlEntry& item : *section) sections << line_of(item) << '\n';
    } else if (is_list_of_tables(entry.value)) {
      for (const TomlValue& element : *entry.value.as<TomlValue::Array>()) {
        sections << "\n[[" << key_text(entry.key) << "]]\n";
        for (const TomlEntry& item : *element.as<TomlValue::Table>()) sections << line_of(item) << '\n';
      }
    } else {
      plain << line_of(entry) << '\n';
    }
  }
  return plain.str() + sections.str();
}

}  // namespace disttrain::config
