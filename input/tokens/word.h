// A part of a text on its way to the model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/result.h"

namespace disttrain::input {

// Normalisers and pre-tokenisers may make a text so many times longer. The largest factor of a real one is 11 (NFKC
// makes 33 bytes of the 3 of U+FDFA). Without a bound, twenty steps that double a text would fill the memory.
inline constexpr std::size_t kMaxGrowth = 64;
inline constexpr std::size_t kFreeTextBytes = 64 * 1024;  // a changed text may always have so many bytes

// The bytes that all parts of one text may have together while they are normalised and cut. A step is one change of a
// part; of several steps the longest result counts.
class TextBudget {
 public:
  explicit TextBudget(std::size_t text_bytes)
      : text_bytes_(text_bytes), most_(std::max(kFreeTextBytes, kMaxGrowth * text_bytes)) {}

  // A step makes `bytes` bytes or more of the current part. Errors, kData: these are too many.
  Status check(std::size_t bytes) {
    longest_ = std::max(longest_, bytes);
    if (bytes <= most_ - spent_) return {};
    return fail(ErrorCode::kData, "the tokenizer makes " + std::to_string(spent_ + bytes) +
                                      " or more bytes of a text of " + std::to_string(text_bytes_) +
                                      " bytes, expected at most " + std::to_string(kMaxGrowth) +
                                      " times as many: take another tokenizer");
  }

  // Call it behind the steps of a part, if check() gave no error.
  void end_part() { spent_ += std::exchange(longest_, 0); }

 private:
  const std::size_t text_bytes_;
  const std::size_t most_;
  std::size_t spent_ = 0;    // by the parts before the current one
  std::size_t longest_ = 0;  // result of a step of the current part
};

struct Word {
  std::string text;
  bool is_first = false;  // it begins where the whole text begins
};

}  // namespace disttrain::input
