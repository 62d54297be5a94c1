// A set of texts, each with a number, that finds those with which another text begins. To find them takes as many steps
// as the longest of the texts has bytes. So a tokenizer bounds its pieces, or a text of one long word would take a time
// that grows with the square of its length.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace disttrain::input {

inline constexpr std::size_t kMaxPieceBytes = 1024;  // of a piece or an added token of a tokenizer

class Trie {
 public:
  // The last number of a text counts. `text` isn't empty.
  void add(std::string_view text, std::int32_t number);

  bool empty() const { return numbers_.size() == 1; }

  // Calls found(bytes, number) for each text of the set with which `text` begins, the shortest first.
  template <typename Found>
  void find_prefixes(std::string_view text, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto next = nodes_.find(key_of(node, text[at]));
      if (next == nodes_.end()) return;
      node = next->second;
      if (numbers_[node] >= 0) found(at + 1, numbers_[node]);
    }
  }

  struct Match {
    std::size_t bytes = 0;  // 0: nothing is found
    std::int32_t number = -1;
  };
  Match longest_prefix(std::string_view text) const;

 private:
  static std::uint64_t key_of(std::uint32_t node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;  // by the node before and the byte
  std::vector<std::int32_t> numbers_ = {-1};                // of each node; -1: no text ends there
};

}  // namespace disttrain::input
