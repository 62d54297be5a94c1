#include "input/tokens/trie.h"

namespace disttrain::input {

void Trie::add(std::string_view text, std::int32_t number) {
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto [at, is_new] = nodes_.emplace(key_of(node, byte), static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) numbers_.push_back(-1);
    node = at->second;
  }
  numbers_[node] = number;
}

Trie::Match Trie::longest_prefix(std::string_view text) const {
  Match longest;
  find_prefixes(text, [&longest](std::size_t bytes, std::int32_t number) { longest = {bytes, number}; });
  return longest;
}

}  // namespace disttrain::input
