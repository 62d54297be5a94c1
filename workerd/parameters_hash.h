// One number for all parameters: runs with the same bits have the same number, however the parameters are sharded.
#pragma once

#include <cstdint>
#include <span>

#include "common/layout.h"

namespace disttrain::workerd {

// XXH3, 64 bits, of the variables' bytes (little-endian float32) in the order of the model. `parameters` is a flat
// array in layout order.
std::uint64_t hash_of_parameters(const Layout& layout, std::span<const float> parameters);

}  // namespace disttrain::workerd
