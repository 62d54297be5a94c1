// The maximum of each 2 x 2 block of a plane, and its gradient. libtorch's, for general windows, took as long as a
// convolution.
#pragma once

#include <cstdint>
#include <span>

namespace disttrain::workerd {

// in: planes of side x side, side even. out: planes of half the side. which: 0..3, the position of the first largest of
// each four; a NaN counts as larger than any number.
void max_pool(std::span<const float> in, std::int64_t side, std::span<float> out, std::span<std::uint8_t> which);

// gradient_in: the value of gradient_out at the position in `which`, 0 at the others.
void max_pool_gradient(std::span<const float> gradient_out, std::span<const std::uint8_t> which, std::int64_t side,
                       std::span<float> gradient_in);

}  // namespace disttrain::workerd
