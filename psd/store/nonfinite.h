// Finds NaNs and infinities in the arrays of a shard: its parameters, slots and averages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "common/layout.h"

namespace disttrain::psd {

// The name of a variable that has a NaN or an infinity in this bucket of the array. The array is laid out as the
// shard's parameters are (Layout).
std::optional<std::string> nonfinite_variable(const Layout& layout, BucketId bucket, std::span<const float> array);

// 'the variable "w" has a NaN or an infinity in its slot 0'. `array`: 0 = the parameters, i + 1 = slot i.
std::string nonfinite_text(const std::string& variable, std::size_t array);

}  // namespace disttrain::psd
