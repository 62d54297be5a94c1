#include "workerd/input/tokens/wordpiece.h"

#include <utility>

#include "workerd/input/tokens/unicode.h"

namespace disttrain::input {

WordPiece::WordPiece(WordPieceOptions options) : options_(std::move(options)) {}

void WordPiece::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::vector<std::size_t> ends;  // of each character
  for (std::size_t at = 0; at < word.size();) ends.push_back(at += character_bytes(word, at));
  if (ends.size() > options_.most_characters) return ids.push_back(options_.unknown);
  const std::size_t old = ids.size();
  std::string piece;
  std::size_t begin = 0;
  std::size_t first = 0;  // the character that begins there
  while (begin < word.size()) {
    std::size_t last = ends.size();
    for (; last > first; --last) {
      piece = begin > 0 ? options_.prefix : std::string();
      piece += word.substr(begin, ends[last - 1] - begin);
      const auto found = options_.vocabulary.find(piece);
      if (found == options_.vocabulary.end()) continue;
      ids.push_back(found->second);
      break;
    }
    if (last == first) {
      ids.resize(old);
      return ids.push_back(options_.unknown);
    }
    begin = ends[last - 1];
    first = last;
  }
}

}  // namespace disttrain::input
