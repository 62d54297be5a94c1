// Unigram language model: of all ways to cut a word into pieces, takes the one with the largest sum of scores (Kudo,
// "Subword Regularization", 2018). Results equal those of the Python packages tokenizers and sentencepiece, ties
// included: of two ways with the same sum, the one whose last piece begins earlier.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "input/tokens/token_model.h"
#include "input/tokens/trie.h"

namespace disttrain::input {

struct UnigramOptions {
  // Pieces that a text may have; the number of each is its id. `scores` has a score for each id.
  Trie pieces;
  std::vector<double> scores;
  double smallest_score = 0.0;          // of the pieces
  std::optional<std::int32_t> unknown;  // the id of unknown characters; those beside each other are one token
  std::optional<ByteTokens> bytes;      // the bytes of unknown characters become these tokens, if all are there
  bool adds_as_float = false;           // sums are rounded to float32, as sentencepiece does
};

class Unigram final : public TokenModel {
 public:
  explicit Unigram(UnigramOptions options);
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;

 private:
  double sum(double a, double b) const;

  const UnigramOptions options_;
};

}  // namespace disttrain::input
