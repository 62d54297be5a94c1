// Conversion between float32 and the other types of numbers that safetensors files have.
#pragma once

#include <span>

#include "common/checkpoint/files.h"
#include "common/checkpoint/safetensors.h"

namespace disttrain::checkpoint {

// Whether values of this type can be read and written as float32: all types but the complex one and the floats of 8
// bits.
bool is_convertible(DType dtype);

// Both functions need a convertible type, and `bytes` of bytes_of(dtype) for each float.
//
// Rounds to nearest. So integers are exact up to 2^24.
void to_floats(DType dtype, Bytes bytes, std::span<float> out);

// Rounds to nearest; F16 and BF16 with ties to even. For an integer, a value outside the type's range becomes the
// nearest value in the range, and a NaN becomes 0. For BOOL, all values but 0 are true after rounding.
void from_floats(DType dtype, std::span<const float> values, MutableBytes out);

}  // namespace disttrain::checkpoint
