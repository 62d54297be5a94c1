// A part of a text on its way to the model.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.h"

namespace disttrain::input {

// A normaliser or a pre-tokeniser may make a text so many times longer. The largest factor of a real one is 11 (NFKC
// makes 33 bytes of the 3 of U+FDFA). Without a bound, twenty steps that double a text would fill the memory.
inline constexpr std::size_t kMaxGrowth = 64;
inline constexpr std::size_t kFreeTextBytes = 64 * 1024;  // a changed text may always have so many bytes

// Errors, kData: `now` bytes are too many for a text that had `before` bytes.
inline Status check_growth(std::size_t before, std::size_t now) {
  if (now <= kFreeTextBytes || now / kMaxGrowth <= before) return {};
  return fail(ErrorCode::kData, "the tokenizer makes " + std::to_string(now) + " or more bytes of a text of " +
                                    std::to_string(before) + " bytes, expected at most " + std::to_string(kMaxGrowth) +
                                    " times as many: take another tokenizer");
}

struct Word {
  std::string text;
  bool is_first = false;  // it begins where the whole text begins
};

}  // namespace disttrain::input
