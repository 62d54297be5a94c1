// Regular expressions of tokenizers. They are written for Oniguruma; ICU matches them. What the two understand in
// another way is rewritten.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace disttrain::input {

// A part of a text, in bytes.
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Regex {
 public:
  // Errors, kData: the expression can't be understood.
  static Result<std::shared_ptr<const Regex>> compile(const std::string& expression);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // All matches that aren't empty, in order. Any thread may call it. Errors, kData: the text needs too many attempts.
  Result<std::vector<TextRange>> find_all(std::string_view text) const;

 private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);

  const std::unique_ptr<Compiled> compiled_;
};

}  // namespace disttrain::input
