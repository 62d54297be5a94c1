// In a column of bytes a number becomes its text, so that categories and labels may be numbers. It is the same text in
// all formats: the shortest one that gives the number. A boolean is 0 or 1.
#pragma once

#include <charconv>
#include <string_view>

#include "workerd/input/table.h"

namespace disttrain::input {

template <typename T>
std::string_view number_word(T number, Texts& texts) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), +number).ptr;
  return texts.keep({text, static_cast<std::size_t>(end - text)});
}

}  // namespace disttrain::input
