// The model of a tokenizer: cuts a word into pieces of its vocabulary. A word may be a whole text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace disttrain::input {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
// The id of each piece.
using Vocabulary = std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>>;

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of the word's pieces. `word` is valid UTF-8. Any thread may call this.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
};

// The ids of the tokens <0x00> to <0xFF>, by which a model writes bytes of unknown characters.
class ByteTokens {
 public:
  // -1 for a byte that isn't in the vocabulary.
  static ByteTokens of(const Vocabulary& vocabulary);
  bool has_all(std::string_view bytes) const;
  void add(std::string_view bytes, std::vector<std::int32_t>& ids) const;
  std::int32_t id(char byte) const { return ids_[static_cast<unsigned char>(byte)]; }

 private:
  std::vector<std::int32_t> ids_ = std::vector<std::int32_t>(256, -1);
};

}  // namespace disttrain::input
