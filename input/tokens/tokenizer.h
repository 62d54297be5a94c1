// Turns texts into token ids, as the file of a tokenizer says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "input/tokens/added_tokens.h"
#include "input/tokens/normaliser.h"
#include "input/tokens/pre_tokeniser.h"
#include "input/tokens/token_model.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20;  // of a file
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;        // of a text that becomes tokens at once

// A text takes this way: `added` tokens are found; the rest is normalised; `added_normalised` tokens are found; the
// rest is cut into words, and the model cuts each word.
struct TokenizerParts {
  AddedTokens added;
  Normaliser normalise;  // may be empty
  AddedTokens added_normalised;
  PreTokeniser cut;  // may be empty: the text is one word
  std::unique_ptr<TokenModel> model;
  // The tokens that the tokenizer sets around each text, such as "[CLS]" and "[SEP]".
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
  std::int32_t largest = 0;  // of the ids
};

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  // Appends the ids of the text's tokens, without those around it. Any thread may call this. Errors, kData: the text
  // isn't UTF-8, or is too long, or becomes so.
  Status encode(std::string_view text, std::vector<std::int32_t>& ids) const;

  const std::vector<std::int32_t>& before() const { return parts_.before; }
  const std::vector<std::int32_t>& after() const { return parts_.after; }
  // All ids are below this.
  std::int64_t size() const { return std::int64_t{parts_.largest} + 1; }

 private:
  Status encode_part(Word part, TextBudget& budget, std::vector<std::int32_t>& ids) const;

  const TokenizerParts parts_;
};

// These read the content of a file. Errors, kData: the content is corrupt, or has a part that disttrain doesn't know.
// They don't name the file.
Result<std::shared_ptr<const Tokenizer>> read_tokenizer_json(std::string_view json);
Result<std::shared_ptr<const Tokenizer>> read_sentencepiece_model(std::string_view model);

}  // namespace disttrain::input
