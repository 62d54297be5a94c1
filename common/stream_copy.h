// Copies bytes straight to memory and not into the cache, for data that will be read much later. So the copy doesn't
// evict data that other code computes with, and the processor doesn't first read the memory that it will overwrite.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace disttrain {

// `to` must be as long as `from`, and must not overlap it. After the copy, this thread may set a flag with a release
// store. Another thread that reads the new flag with an acquire load then sees the whole copy.
inline void stream_copy(std::span<const std::byte> from, std::span<std::byte> to) {
#ifdef __SSE2__
  constexpr std::size_t kLane = sizeof(__m128i);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to.data()) % kLane;
  std::size_t i = std::min(misaligned == 0 ? 0 : kLane - misaligned, from.size());
  std::memcpy(to.data(), from.data(), i);
  for (; i + kLane <= from.size(); i += kLane)
    _mm_stream_si128(reinterpret_cast<__m128i*>(&to[i]), _mm_loadu_si128(reinterpret_cast<const __m128i*>(&from[i])));
  std::memcpy(to.data() + i, from.data() + i, from.size() - i);
  _mm_sfence();  // without the fence, streaming stores could become visible after later stores
#else
  std::memcpy(to.data(), from.data(), to.size());
#endif
}

}  // namespace disttrain
