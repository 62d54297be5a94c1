#include "input/tokens/wordpiece.h"

#include "input/tokens/unicode.h"

namespace disttrain::input {

WordPiece::WordPiece(const WordPieceOptions& options)
    : unknown_(options.unknown), most_characters_(options.most_characters) {
  for (const auto& [piece, id] : options.vocabulary) {
    if (!piece.empty()) first_.add(piece, id);
    const std::string_view text = piece;
    if (text.size() > options.prefix.size() && text.starts_with(options.prefix))
      next_.add(text.substr(options.prefix.size()), id);
  }
}

void WordPiece::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < word.size(); at += character_bytes(word, at)) ++characters;
  if (characters > most_characters_) return ids.push_back(unknown_);
  const std::size_t old = ids.size();
  for (std::size_t begin = 0; begin < word.size();) {
    // The texts are UTF-8, so a piece with which the rest of the word begins ends between two characters.
    const Trie::Match piece = (begin == 0 ? first_ : next_).longest_prefix(word.substr(begin));
    if (piece.bytes == 0) {
      ids.resize(old);
      return ids.push_back(unknown_);
    }
    ids.push_back(piece.number);
    begin += piece.bytes;
  }
}

}  // namespace disttrain::input
