// Whether a loop over arrays has written a large number, an infinity or a NaN. The loop sets a bit while each value is
// in a register, so the check costs no pass over memory of its own: three instructions for a vector of values.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/update/vector_width.h"

namespace disttrain::update {

// A number of this magnitude is large. It is far below the type's limit, so that one more update of smaller numbers,
// and of gradients below kLargeGradient, stays finite.
template <typename T>
inline constexpr T kLarge = sizeof(T) == sizeof(float) ? static_cast<T>(1e30F) : static_cast<T>(1e250);
// The square of a smaller gradient isn't large.
template <typename T>
inline constexpr T kLargeGradient = sizeof(T) == sizeof(float) ? static_cast<T>(1e15F) : static_cast<T>(1e125);

// Integers of the size of T. `flags` of a loop is the bitwise or of what the functions below return. Its highest bit is
// set if one of the values was large or not finite.
template <typename T>
using Flags = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

template <typename T>
inline constexpr Flags<T> kHighestBit = Flags<T>{1} << (std::numeric_limits<Flags<T>>::digits - 1);

// For a value that isn't negative. A NaN may go unnoticed, if its sign is set.
template <typename T>
DISTTRAIN_INLINE_BODY Flags<T> flag_of_positive(T value) {
  // The bits of a larger number are a larger integer. So the sum reaches the highest bit if the number is large.
  return std::bit_cast<Flags<T>>(value) + (kHighestBit<T> - std::bit_cast<Flags<T>>(kLarge<T>));
}

template <typename T>
DISTTRAIN_INLINE_BODY Flags<T> flag_of(T value) {
  return flag_of_positive(std::bit_cast<T>(std::bit_cast<Flags<T>>(value) & ~kHighestBit<T>));
}

}  // namespace disttrain::update
