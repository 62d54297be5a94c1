// Byte-pair encoding: the pieces of a word are at first its characters. Then the pair of neighbours with the lowest
// rank is merged, again and again, until no pair has a rank (Sennrich, Haddow, Birch, "Neural Machine Translation of
// Rare Words with Subword Units", 2016). Results equal those of the Python package tokenizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "input/tokens/token_model.h"

namespace disttrain::input {

struct BpeOptions {
  Vocabulary vocabulary;
  std::optional<std::int32_t> unknown;  // the id of unknown characters; nothing: they are left out
  bool fuses_unknown = false;           // unknown characters beside each other are one token
  bool falls_back_to_bytes = false;     // the bytes of an unknown character become tokens, if the vocabulary has them
  bool ignores_merges = false;          // a word that is in the vocabulary is one token
};

class Bpe final : public TokenModel {
 public:
  explicit Bpe(BpeOptions options);

  // The pair becomes the piece `merged`. The first rank of a pair counts.
  void add_merge(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;

 private:
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t merged = 0;
  };
  const Merge* find(std::int32_t left, std::int32_t right) const;
  void add_characters(std::string_view word, std::vector<std::int32_t>& ids) const;

  const BpeOptions options_;
  const ByteTokens bytes_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // by both ids
};

}  // namespace disttrain::input
