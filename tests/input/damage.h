// Damages the content of a file at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/random.h"

namespace disttrain::input {

// Changes, removes or inserts some bytes.
inline std::string damage(std::string content, Random& random) {
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !content.empty(); ++i) {
    // Half of the changes hit the first bytes, because a header can be wrong in more ways than values can.
    const std::size_t reach = random.below(2) == 0 ? std::min<std::size_t>(content.size(), 80) : content.size();
    const std::size_t at = random.below(reach);
    switch (random.below(5)) {
      case 0:
        content[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        content[at] = static_cast<char>(content[at] ^ (1 << random.below(8)));
        break;
      case 2:
        content.resize(at);
        break;
      case 3:
        content.insert(at, std::string(1 + random.below(9), static_cast<char>(random.below(256))));
        break;
      default:
        content.erase(at, 1 + random.below(9));
    }
  }
  return content;
}

}  // namespace disttrain::input
