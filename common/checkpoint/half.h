// Conversion of the 16-bit floats of safetensors: F16 is IEEE 754 binary16, and BF16 is the upper half of a float32.
#pragma once

#include <cstdint>

namespace disttrain::checkpoint {

// Exact.
float from_f16(std::uint16_t bits);
float from_bf16(std::uint16_t bits);

// Round to nearest, ties to even. A value that is too large becomes infinite. A NaN stays a NaN.
std::uint16_t to_f16(float value);
std::uint16_t to_bf16(float value);

}  // namespace disttrain::checkpoint
