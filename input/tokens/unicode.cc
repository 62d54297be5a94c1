#include "input/tokens/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <limits>

namespace disttrain::input {

std::optional<std::size_t> find_invalid(std::string_view text) {
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t at = 0; at < size;) {
    const std::int64_t begin = at;
    UChar32 c = 0;
    U8_NEXT(text.data(), at, size, c);
    if (c < 0) return static_cast<std::size_t>(begin);
  }
  return std::nullopt;
}

CodePoint character_at(std::string_view text, std::size_t at) {
  UChar32 c = 0;
  auto i = static_cast<std::int64_t>(at);
  U8_NEXT(text.data(), i, static_cast<std::int64_t>(text.size()), c);
  return c;
}

void append(CodePoint character, std::string& to) {
  char bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, character);
  to.append(bytes, size);
}

bool is_whitespace(CodePoint c) {
  return u_isUWhiteSpace(c) != 0;
}
bool is_punctuation(CodePoint c) {
  const bool is_ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return is_ascii || (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}
bool is_numeric(CodePoint c) {
  return (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0;
}
bool is_other(CodePoint c) {
  return (U_GET_GC_MASK(c) & U_GC_C_MASK) != 0;
}
bool is_mark(CodePoint c) {
  return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0;
}
bool is_nonspacing_mark(CodePoint c) {
  return (U_GET_GC_MASK(c) & U_GC_MN_MASK) != 0;
}

bool is_chinese(CodePoint c) {
  constexpr CodePoint kBlocks[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [c](const CodePoint(&block)[2]) { return c >= block[0] && c <= block[1]; });
}

std::string lowercase(std::string_view text) {
  std::string to;
  to.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); at += character_bytes(text, at)) {
    const CodePoint c = character_at(text, at);
    if (c < 0x80)
      to += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else
      icu::UnicodeString(c).toLower(icu::Locale::getRoot()).toUTF8String(to);
  }
  return to;
}

std::optional<std::string> normalised(std::string_view text, UnicodeForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const how = form == UnicodeForm::kNfc    ? icu::Normalizer2::getNFCInstance(error)
                                      : form == UnicodeForm::kNfd  ? icu::Normalizer2::getNFDInstance(error)
                                      : form == UnicodeForm::kNfkc ? icu::Normalizer2::getNFKCInstance(error)
                                                                   : icu::Normalizer2::getNFKDInstance(error);
  if (U_FAILURE(error) || text.size() > std::numeric_limits<std::int32_t>::max() / 4) return std::nullopt;
  std::string to;
  icu::StringByteSink<std::string> sink(&to);
  how->normalizeUTF8(0, {text.data(), static_cast<std::int32_t>(text.size())}, sink, nullptr, error);
  if (U_FAILURE(error)) return std::nullopt;
  return to;
}

}  // namespace disttrain::input
