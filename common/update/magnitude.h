// Whether a loop over arrays has written a large number, an infinity or a NaN. The loop adds up the magnitudes of the
// values while they are in registers, so the check costs no pass over memory of its own: one or two instructions for a
// vector of values. The sum is large if a value is large, and stays infinite or a NaN if a value is.
#pragma once

namespace disttrain::update {

// A number of this magnitude is large. It is far below the type's limit, so that one more update of smaller numbers,
// and of gradients below kLargeGradient, stays finite.
template <typename T>
inline constexpr T kLarge = sizeof(T) == sizeof(float) ? static_cast<T>(1e30F) : static_cast<T>(1e250);
// The square of a smaller gradient isn't large.
template <typename T>
inline constexpr T kLargeGradient = sizeof(T) == sizeof(float) ? static_cast<T>(1e15F) : static_cast<T>(1e125);

// `sum`: the sum of the magnitudes of all values.
template <typename T>
constexpr bool is_small(T sum) {
  return sum < kLarge<T>;  // false for a NaN
}

}  // namespace disttrain::update
