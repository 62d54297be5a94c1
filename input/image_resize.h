// Changes the size of an image.
#pragma once

#include <cstdint>
#include <span>

#include "input/image.h"

namespace disttrain::input {

// Bilinear: each pixel of `out` is a mean of the four pixels of `in` around its centre. So an image that becomes less
// than half as large loses pixels. This is resize in OpenCV (INTER_LINEAR) and in PyTorch (bilinear, align_corners =
// False, antialias = False). Both shapes have the same channels, and no side is 0.
void resize_image(const ImageShape& from, std::span<const std::uint8_t> in, const ImageShape& to,
                  std::span<std::uint8_t> out);

}  // namespace disttrain::input
