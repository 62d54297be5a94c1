// Tokens that are found in a text as a whole, such as "<|endoftext|>", before the rest is cut into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "input/tokens/trie.h"

namespace disttrain::input {

struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool strips_left = false;  // white space before it belongs to it
  bool strips_right = false;
};

class AddedTokens {
 public:
  // The token's text isn't empty.
  void add(AddedToken token);

  // A part of a text: a token, or what lies between two of them.
  struct Part {
    std::string_view text;
    std::int32_t id = -1;  // of the token; -1: the part isn't a token
  };
  // Parts of `text` in order; none of them is empty. Of several tokens at one place the longest counts.
  std::vector<Part> find(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;
  Trie texts_;
};

}  // namespace disttrain::input
