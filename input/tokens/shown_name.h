// How errors show a text of a tokenizer's file.
#pragma once

#include <string>
#include <string_view>

#include "common/printable.h"

namespace disttrain::input {

// The text in quotes, cut where it is long.
inline std::string shown_name(std::string_view text) {
  constexpr std::size_t kMost = 100;
  return "\"" + std::string(cut_text(text, kMost)) + (text.size() > kMost ? "...\"" : "\"");
}

}  // namespace disttrain::input
