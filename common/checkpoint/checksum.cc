#include "common/checkpoint/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace disttrain::checkpoint {

std::uint64_t checksum_of(Bytes bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t checksum_of(const std::vector<std::uint64_t>& chunks) {
  return checksum_of(std::as_bytes(std::span(chunks)));
}

}  // namespace disttrain::checkpoint
