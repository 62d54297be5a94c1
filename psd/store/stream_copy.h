// Copies floats straight to memory and not into the cache, for data that will be read much later. So the copy doesn't
// evict data that other code computes with, and the processor doesn't first read the memory that it will overwrite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace disttrain::psd {

// `to` must be as long as `from`, and must not overlap it. After the copy, this thread may set a flag with a release
// store. Another thread that reads the new flag with an acquire load then sees the whole copy.
inline void stream_copy(std::span<const float> from, std::span<float> to) {
#ifdef __SSE2__
  constexpr std::size_t kLane = 4;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to.data()) / sizeof(float) % kLane;
  std::size_t i = std::min(misaligned == 0 ? 0 : kLane - misaligned, from.size());
  std::copy_n(from.begin(), i, to.begin());
  for (; i + kLane <= from.size(); i += kLane) _mm_stream_ps(&to[i], _mm_loadu_ps(&from[i]));
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(i), from.end(), to.begin() + static_cast<std::ptrdiff_t>(i));
  _mm_sfence();  // without the fence, streaming stores could become visible after later stores
#else
  std::ranges::copy(from, to.begin());
#endif
}

}  // namespace disttrain::psd
