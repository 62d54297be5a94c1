// Finds characters in 64 bytes at a time: bit i of a mask says something about byte i.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace disttrain::input {

inline constexpr std::size_t kMaskBytes = 64;

// Which of the 64 bytes at `at` equal `c`. All of them must be readable.
inline std::uint64_t mask_of(const char* at, char c) {
  std::uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i wanted = _mm_set1_epi8(c);
  for (std::size_t i = 0; i < kMaskBytes; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
    const auto bits = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)));
    mask |= std::uint64_t{bits} << i;
  }
#else
  for (std::size_t i = 0; i < kMaskBytes; ++i) mask |= std::uint64_t{at[i] == c} << i;
#endif
  return mask;
}

// Bit i is the parity of bits 0 to i. If the mask has the quotes, the result has the bytes within quotes, with each
// opening quote and without the closing one.
inline std::uint64_t parity_up_to(std::uint64_t mask) {
  for (int shift = 1; shift < 64; shift *= 2) mask ^= mask << shift;
  return mask;
}

// The lowest `count` bits, of at most 64.
inline std::uint64_t low_bits(std::size_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace disttrain::input
