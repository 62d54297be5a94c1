#include "workerd/input/rows.h"

#include <algorithm>

namespace disttrain::input {

namespace {

constexpr std::size_t kRowsAhead = 3;
constexpr std::size_t kLineBytes = 64;
// If a row is longer than this, the hardware prefetches the rest while the row is being read.
constexpr std::size_t kMostPrefetchBytes = 4096;

void prefetch(const void* from, std::size_t bytes) {
  const auto* line = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < std::min(bytes, kMostPrefetchBytes); at += kLineBytes) __builtin_prefetch(line + at);
}

}  // namespace

// Prefetches a few rows ahead. The rows are scattered over the memory, so without this each row would wait for memory.
template <typename T, typename Out>
void gather_rows(const T* values, std::uint64_t elements, std::span<const std::uint64_t> indices, float scale,
                 Out* __restrict out) {
  const std::size_t bytes = elements * sizeof(T);
  for (std::size_t i = 0; i < std::min(kRowsAhead, indices.size()); ++i) {
    prefetch(values + indices[i] * elements, bytes);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kRowsAhead < indices.size()) prefetch(values + indices[i + kRowsAhead] * elements, bytes);
    const T* __restrict row = values + indices[i] * elements;
    for (std::size_t j = 0; j < elements; ++j) out[j] = static_cast<Out>(static_cast<float>(row[j]) * scale);
    out += elements;
  }
}

using Indices = std::span<const std::uint64_t>;
template void gather_rows(const std::uint8_t*, std::uint64_t, Indices, float, float*);
template void gather_rows(const std::uint8_t*, std::uint64_t, Indices, float, double*);
template void gather_rows(const std::uint8_t*, std::uint64_t, Indices, float, std::int32_t*);
template void gather_rows(const std::uint8_t*, std::uint64_t, Indices, float, std::int64_t*);
template void gather_rows(const std::uint8_t*, std::uint64_t, Indices, float, std::uint8_t*);
template void gather_rows(const float*, std::uint64_t, Indices, float, float*);
template void gather_rows(const float*, std::uint64_t, Indices, float, double*);
template void gather_rows(const float*, std::uint64_t, Indices, float, std::int32_t*);
template void gather_rows(const float*, std::uint64_t, Indices, float, std::int64_t*);
template void gather_rows(const float*, std::uint64_t, Indices, float, std::uint8_t*);

}  // namespace disttrain::input
