// XXH3 (64 bits), by libxxhash.
#pragma once

#include <cstdint>
#include <vector>

#include "common/checkpoint/files.h"

namespace disttrain::checkpoint {

std::uint64_t checksum_of(Bytes bytes);
// The checksum of a whole file from those of its chunks (FileEntry::checksum).
std::uint64_t checksum_of(const std::vector<std::uint64_t>& chunks);

}  // namespace disttrain::checkpoint
