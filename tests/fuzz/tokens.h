// The fuzz targets of tokenizers share these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>

#include "common/check.h"
#include "input/tokens/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace disttrain::input {

// An input is a text, which may be empty, and then the file of a tokenizer, which begins with a certain byte.
struct TextAndFile {
  std::string_view text;
  std::string_view file;
};
inline TextAndFile divided(const std::uint8_t* data, std::size_t size, char begin_of_file) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t begin = std::min(input.find(begin_of_file), size);
  return begin == size ? TextAndFile{{}, input} : TextAndFile{input.substr(0, begin), input.substr(begin)};
}

// A text either fails or gives ids below the tokenizer's size.
inline void check_ids(const Tokenizer& tokenizer, std::string_view text) {
  // The file is behind the text of the input. A copy has no bytes behind it.
  const auto copy = std::make_unique<char[]>(text.size());
  std::copy(text.begin(), text.end(), copy.get());
  std::vector<std::int32_t> ids;
  if (!tokenizer.encode({copy.get(), text.size()}, ids)) return;
  for (const std::int32_t id : ids) {
    DISTTRAIN_CHECK_LE(0, id);
    DISTTRAIN_CHECK_LT(std::int64_t{id}, tokenizer.size());
  }
}

// Encodes the input's text, and another one that the input's size chooses.
inline void check_ids(const Tokenizer& tokenizer, const TextAndFile& input) {
  static constexpr std::string_view kTexts[] = {"", " ", "The quick  brown fox's 12345\n\n  jumps! ",
                                                "Größe 狐狸 😀 <mask>[SEP]<sep>", "\xff"};
  check_ids(tokenizer, input.text);
  for_each_case(input.file.size(), std::size(kTexts), [&](std::size_t i) { check_ids(tokenizer, kTexts[i]); });
}

}  // namespace disttrain::input
