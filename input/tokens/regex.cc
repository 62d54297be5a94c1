#include "input/tokens/regex.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "input/tokens/shown_name.h"
#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

// ICU counts in units of about a millisecond.
constexpr std::int32_t kMostMilliseconds = 60'000;

// ICU's \s lacks U+000B and U+0085.
std::string rewritten(const std::string& expression) {
  std::string to;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '\\' || i + 1 == expression.size()) {
      to += expression[i];
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's')
      to += "\\p{White_Space}";
    else if (escaped == 'S')
      to += "\\P{White_Space}";
    else
      to += {'\\', escaped};
  }
  return to;
}

}  // namespace

struct Regex::Compiled {
  std::unique_ptr<icu::RegexPattern> pattern;
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::~Regex() = default;

Result<std::shared_ptr<const Regex>> Regex::compile(const std::string& expression) {
  UErrorCode error = U_ZERO_ERROR;
  UParseError place{};
  // As in Oniguruma, ^ and $ are the begin and the end of a line, which only "\n" ends.
  auto compiled = std::make_unique<Compiled>();
  compiled->pattern.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(rewritten(expression)),
                                                     UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, error));
  if (U_FAILURE(error))
    return fail(ErrorCode::kData, "the regular expression " + shown_name(expression) + " can't be used (" +
                                      u_errorName(error) + "): take a tokenizer with another one");
  return std::shared_ptr<const Regex>(new Regex(std::move(compiled)));
}

Result<std::vector<TextRange>> Regex::find_all(std::string_view text) const {
  if (text.size() > std::numeric_limits<std::int32_t>::max())
    return fail(ErrorCode::kData, "the tokenizer makes " + std::to_string(text.size()) +
                                      " bytes of this text, too many for its regular expression: divide the text");
  UErrorCode error = U_ZERO_ERROR;
  const icu::UnicodeString wide = icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
  const std::unique_ptr<icu::RegexMatcher> matcher(compiled_->pattern->matcher(wide, error));
  if (U_SUCCESS(error)) matcher->setTimeLimit(kMostMilliseconds, error);
  std::vector<TextRange> found;
  std::size_t at = 0;        // a byte of `text`
  std::int32_t wide_at = 0;  // the same place in `wide`
  const auto bytes_at = [&](std::int32_t target) {
    while (wide_at < target) {
      const std::size_t bytes = character_bytes(text, at);
      wide_at += bytes == 4 ? 2 : 1;
      at += bytes;
    }
    return at;
  };
  while (U_SUCCESS(error) && matcher->find(error)) {
    const std::int32_t begin = matcher->start(error);
    const std::int32_t end = matcher->end(error);
    if (begin == end) continue;
    const std::size_t first = bytes_at(begin);
    found.push_back({first, bytes_at(end)});
  }
  if (U_SUCCESS(error)) return found;
  return fail(ErrorCode::kData, std::string("the tokenizer's regular expression failed on this text (") +
                                    u_errorName(error) + "): leave the text out or shorten it");
}

}  // namespace disttrain::input
