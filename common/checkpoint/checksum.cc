#include "common/checkpoint/checksum.h"

#include <xxhash.h>
#ifdef __x86_64__
#include <xxh_x86dispatch.h>  // makes XXH3_64bits use the widest vectors that the CPU has
#endif

namespace disttrain::checkpoint {

std::uint64_t checksum_of(Bytes bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t checksum_of(const std::vector<std::uint64_t>& chunks) {
  return checksum_of(std::as_bytes(std::span(chunks)));
}

}  // namespace disttrain::checkpoint
