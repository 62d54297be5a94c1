#include "input/tokens/added_tokens.h"

#include <utility>

#include "input/tokens/unicode.h"

namespace disttrain::input {

namespace {

bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Where the white space before `end` begins, not before `least`.
std::size_t begin_of_space(std::string_view text, std::size_t least, std::size_t end) {
  while (end > least) {
    std::size_t at = end - 1;
    while (at > least && is_inside_character(text[at])) --at;
    if (!is_whitespace(character_at(text, at))) break;
    end = at;
  }
  return end;
}

std::size_t end_of_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_whitespace(character_at(text, at))) at += character_bytes(text, at);
  return at;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  texts_.add(token.text, static_cast<std::int32_t>(tokens_.size()));
  tokens_.push_back(std::move(token));
}

std::vector<AddedTokens::Part> AddedTokens::find(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !texts_.empty();) {
    const Trie::Match found = texts_.longest_prefix(text.substr(at));
    if (found.bytes == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(found.number)];
    const std::size_t begin = token.strips_left ? begin_of_space(text, done, at) : at;
    at += found.bytes;
    if (token.strips_right) at = end_of_space(text, at);
    if (begin > done) parts.push_back({text.substr(done, begin - done), -1});
    parts.push_back({text.substr(begin, at - begin), token.id});
    done = at;
  }
  if (done < text.size()) parts.push_back({text.substr(done), -1});
  return parts;
}

}  // namespace disttrain::input
