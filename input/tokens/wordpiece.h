// WordPiece, as BERT uses it: a word is cut from its begin into the longest pieces that the vocabulary has. Pieces that
// don't begin a word have a prefix in the vocabulary, such as "##". A word with a part that no piece covers is unknown
// as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "input/tokens/token_model.h"
#include "input/tokens/trie.h"

namespace disttrain::input {

// No piece is longer than kMaxPieceBytes.
struct WordPieceOptions {
  Vocabulary vocabulary;
  std::int32_t unknown = 0;
  std::string prefix = "##";
  std::size_t most_characters = 100;  // a longer word is unknown
};

class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const WordPieceOptions& options);
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;

 private:
  const std::int32_t unknown_;
  const std::size_t most_characters_;
  Trie first_;  // the pieces that a word begins with
  Trie next_;   // those that follow, without the prefix
};

}  // namespace disttrain::input
