// Max pooling: the maximum of each 2 x 2 block of an image, and its gradient. libtorch's max pooling, which supports
// windows of any size, took as long as a convolution.
#pragma once

#include <cstdint>
#include <span>

namespace disttrain::workerd {

// `in` holds square images of side x side values; `side` is even. `out` gets the maximum of each 2 x 2 block, and
// `which` gets the position of that maximum in its block, 0 to 3 in row-major order. If several values are equally
// large, the first counts. A NaN counts as larger than any number.
void max_pool(std::span<const float> in, std::int64_t side, std::span<float> out, std::span<std::uint8_t> which);

// For each 2 x 2 block of `gradient_in`, `gradient_out` has one value and `which` has one position. Writes the value at
// this position of the block, and 0 at the block's other three positions.
void max_pool_gradient(std::span<const float> gradient_out, std::span<const std::uint8_t> which, std::int64_t side,
                       std::span<float> gradient_in);

}  // namespace disttrain::workerd
