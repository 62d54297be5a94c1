// The maximum of each 2 x 2 of a plane, and the way back. libtorch's, for general windows, took as long as a
// convolution.
#pragma once

#include <cstdint>
#include <span>

namespace disttrain::workerd {

// in: planes of side x side, side even. out: planes of half the side. which: 0..3, the first of the largest of each
// four; NaN wins over numbers.
void max_pool(std::span<const float> in, std::int64_t side, std::span<float> out, std::span<std::uint8_t> which);

// gradient_in: that of gradient_out where `which` says, else 0.
void max_pool_gradient(std::span<const float> gradient_out, std::span<const std::uint8_t> which, std::int64_t side,
                       std::span<float> gradient_in);

}  // namespace disttrain::workerd
