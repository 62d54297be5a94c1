// The table in a SentencePiece model that says which characters become which others. It is a double-array trie in the
// form of the library Darts-clone (https://github.com/s-yata/darts-clone), and then the new characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace disttrain::input {

class Charsmap {
 public:
  // `table` may be empty: then nothing is replaced. Errors, kData: it is corrupt.
  static Result<Charsmap> read(std::string_view table);

  struct Match {
    std::size_t bytes = 0;  // 0: nothing is found
    std::string_view to;
  };
  // The longest text of the table with which `text` begins.
  Match longest_prefix(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;  // each ends with a byte of 0
};

}  // namespace disttrain::input
