// XXH3 (64 bits), by libxxhash.
#pragma once

#include <cstdint>
#include <vector>

#include "common/checkpoint/files.h"

namespace disttrain::checkpoint {

std::uint64_t checksum_of(Bytes bytes);
// Computes the checksum of a whole file (FileEntry::checksum) from the checksums of its chunks.
std::uint64_t checksum_of(const std::vector<std::uint64_t>& chunks);

}  // namespace disttrain::checkpoint
