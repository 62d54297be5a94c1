// In a column of bytes a number becomes its text, so that categories and labels may be numbers. It is the same text in
// all formats and for all types: a whole number of at most kLargestWhole is written as an integer, -0 as "0". Another
// number has the shortest text that gives the number in its type. A boolean is 0 or 1.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "input/number_text.h"
#include "input/table.h"

namespace disttrain::input {

template <typename T>
std::string_view number_word(T number, Texts& texts) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::abs(number) <= kLargestWhole && number == std::floor(number))
      return number_word(static_cast<std::int64_t>(number), texts);
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), +number).ptr;
  return texts.keep({text, static_cast<std::size_t>(end - text)});
}

}  // namespace disttrain::input
