// The templates of schema.h.
#pragma once

#include "common/config/reader/schema.h"

namespace disttrain::config {

namespace internal {

std::string integer_range(std::int64_t least, std::int64_t most);
// `word or `, `"a", "b" or "c"`.
std::string list_of_words(const std::vector<std::string>& words);
void read_choice(const TomlValue& value, const std::string& path, const std::vector<std::string>& words,
                 const std::vector<std::string>& later, Reading& reading,
                 const std::function<void(std::size_t)>& store);

}  // namespace internal

template <typename T>
Field integer(T& to, std::int64_t least, std::int64_t most) {
  const std::string expected = internal::integer_range(least, most);
  return Field{expected,
               [&to, expected, least, most](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* number = value.as<std::int64_t>();
                 if (number == nullptr || *number < least || *number > most)
                   return refuse_value(value, path, expected, reading);
                 to = static_cast<T>(*number);
               },
               [&to] { return std::optional(toml(static_cast<std::int64_t>(to))); }};
}

template <typename T>
Field integer_or(const std::string& word_for_zero, T& to, std::int64_t least, std::int64_t most) {
  const std::string expected = quoted(word_for_zero) + " or " + internal::integer_range(least, most);
  return Field{
      expected,
      [&to, word_for_zero, expected, least, most](const TomlValue& value, const std::string& path, Reading& reading) {
        if (const auto* word = value.as<std::string>(); word != nullptr && *word == word_for_zero) {
          to = 0;
          return;
        }
        const auto* number = value.as<std::int64_t>();
        if (number == nullptr || *number < least || *number > most) return refuse_value(value, path, expected, reading);
        to = static_cast<T>(*number);
      },
      [&to, word_for_zero] {
        return std::optional(to == 0 ? toml(word_for_zero) : toml(static_cast<std::int64_t>(to)));
      }};
}

template <typename E>
Field choice(E& to, std::vector<std::pair<std::string, E>> words, std::vector<std::string> later) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : words) names.push_back(name);
  return Field{internal::list_of_words(names),
               [&to, words, names, later](const TomlValue& value, const std::string& path, Reading& reading) {
                 internal::read_choice(value, path, names, later, reading,
                                       [&](std::size_t i) { to = words[i].second; });
               },
               [&to, words]() -> std::optional<TomlValue> {
                 for (const auto& [name, word] : words)
                   if (word == to) return toml(name);
                 return std::nullopt;
               }};
}

template <typename T>
Field sections(std::vector<T>& to, std::function<Keys(T&)> keys_of) {
  const std::string expected = "a list of [[sections]]";
  T example;
  return Field{expected,
               [&to, keys_of, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* elements = value.as<TomlValue::Array>();
                 if (elements == nullptr) return refuse_value(value, path, expected, reading);
                 for (std::size_t i = 0; i < elements->size(); ++i) {
                   const std::string element_path = path + "[" + std::to_string(i) + "]";
                   if ((*elements)[i].template as<TomlValue::Table>() == nullptr) {
                     refuse_value((*elements)[i], element_path, expected, reading);
                     continue;
                   }
                   T element;
                   read_table(keys_of(element), (*elements)[i], element_path + ".", reading);
                   to.push_back(std::move(element));
                 }
               },
               [&to, keys_of]() -> std::optional<TomlValue> {
                 TomlValue::Array elements;
                 for (T& element : to) elements.push_back(TomlValue{write_table(keys_of(element)), {}});
                 return TomlValue{std::move(elements), {}};
               },
               false,
               true,
               describe(keys_of(example))};
}

}  // namespace disttrain::config
