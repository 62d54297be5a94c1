// Copies floats past the cache: for what is written now and read much later, so that it neither takes the cache from
// those that compute nor makes the memory bring what is overwritten whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace disttrain::psd {

// `to` is as long as `from`, and elsewhere. Another thread that is told by a release store sees all of it.
inline void stream_copy(std::span<const float> from, std::span<float> to) {
#ifdef __SSE2__
  constexpr std::size_t kLane = 4;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to.data()) / sizeof(float) % kLane;
  std::size_t i = std::min(misaligned == 0 ? 0 : kLane - misaligned, from.size());
  std::copy_n(from.begin(), i, to.begin());
  for (; i + kLane <= from.size(); i += kLane) _mm_stream_ps(&to[i], _mm_loadu_ps(&from[i]));
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(i), from.end(), to.begin() + static_cast<std::ptrdiff_t>(i));
  _mm_sfence();  // such stores aren't ordered otherwise
#else
  std::ranges::copy(from, to.begin());
#endif
}

}  // namespace disttrain::psd
