// A hash of all parameters. Two runs with the same parameters, bit by bit, have the same hash, even if their numbers of
// shards differ.
#pragma once

#include <cstdint>
#include <span>

#include "common/layout.h"

namespace disttrain::workerd {

// Returns the 64-bit XXH3 hash of the variables' bytes (little-endian), in the order of the model. `parameters`
// is the flat array in the order of the layout.
std::uint64_t hash_of_parameters(const Layout& layout, std::span<const float> parameters);

}  // namespace disttrain::workerd
