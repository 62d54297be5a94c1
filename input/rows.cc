#include "input/rows.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace disttrain::input {

namespace {

constexpr std::size_t kRowsAhead = 3;
constexpr std::size_t kSmallRowsAhead = 8;  // rows of at most two lines
constexpr std::size_t kLineBytes = 64;
// If a row is longer than this, the hardware prefetches the rest while the row is being read.
constexpr std::size_t kMostPrefetchBytes = 4096;

void prefetch(const void* from, std::size_t bytes) {
  const auto* line = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < std::min(bytes, kMostPrefetchBytes); at += kLineBytes) __builtin_prefetch(line + at);
}

template <typename T, typename Out>
Out converted(T value, [[maybe_unused]] Out scale) {
  if constexpr (std::is_floating_point_v<Out>)
    return static_cast<Out>(value) * scale;
  else
    return static_cast<Out>(value);
}

// Prefetches a few rows ahead. The rows are scattered over the memory, so without this each row would wait for memory.
// row_at(i) is the begin of row i.
template <typename RowAt, typename Out>
void copy_rows(std::size_t count, const RowAt& row_at, std::uint64_t elements, double scale, Out* __restrict out) {
  const std::size_t bytes = elements * sizeof(*row_at(0));
  const auto factor = static_cast<Out>(scale);
  const std::size_t ahead = bytes <= 2 * kLineBytes ? kSmallRowsAhead : kRowsAhead;
  for (std::size_t i = 0; i < std::min(ahead, count); ++i) prefetch(row_at(i), bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) prefetch(row_at(i + ahead), bytes);
    const auto* __restrict row = row_at(i);
    for (std::size_t j = 0; j < elements; ++j) out[j] = converted(row[j], factor);
    out += elements;
  }
}

}  // namespace

template <typename T, typename Out>
void gather_rows(const T* values, RowShape shape, std::span<const std::uint64_t> indices, double scale, Out* out) {
  copy_rows(
      indices.size(), [=](std::size_t i) { return values + indices[i] * shape.stride; }, shape.elements, scale, out);
}

template <typename T, typename Out>
void gather_rows(std::span<const void* const> rows, std::uint64_t elements, double scale, Out* out) {
  copy_rows(
      rows.size(), [=](std::size_t i) { return static_cast<const T*>(rows[i]); }, elements, scale, out);
}

template <typename T>
Range<T> range_of(std::span<const T> values) {
  Range<T> range{values[0], values[0]};
  for (const T value : values) {
    range.smallest = std::min(range.smallest, value);
    range.largest = std::max(range.largest, value);
  }
  return range;
}

// A loop without a branch, so that the compiler vectorises it.
bool are_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t unfit = 0;
  for (const float value : values)
    unfit |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
  return unfit == 0;
}

using Indices = std::span<const std::uint64_t>;
template void gather_rows(const std::uint8_t*, RowShape, Indices, double, float*);
template void gather_rows(const std::uint8_t*, RowShape, Indices, double, double*);
template void gather_rows(const std::uint8_t*, RowShape, Indices, double, std::int32_t*);
template void gather_rows(const std::uint8_t*, RowShape, Indices, double, std::int64_t*);
template void gather_rows(const std::uint8_t*, RowShape, Indices, double, std::uint8_t*);
template void gather_rows(const std::int32_t*, RowShape, Indices, double, float*);
template void gather_rows(const std::int32_t*, RowShape, Indices, double, double*);
template void gather_rows(const std::int32_t*, RowShape, Indices, double, std::int32_t*);
template void gather_rows(const std::int32_t*, RowShape, Indices, double, std::int64_t*);
template void gather_rows(const std::int32_t*, RowShape, Indices, double, std::uint8_t*);
template void gather_rows(const std::int64_t*, RowShape, Indices, double, float*);
template void gather_rows(const std::int64_t*, RowShape, Indices, double, double*);
template void gather_rows(const std::int64_t*, RowShape, Indices, double, std::int32_t*);
template void gather_rows(const std::int64_t*, RowShape, Indices, double, std::int64_t*);
template void gather_rows(const std::int64_t*, RowShape, Indices, double, std::uint8_t*);
template void gather_rows(const float*, RowShape, Indices, double, float*);
template void gather_rows(const float*, RowShape, Indices, double, double*);
template void gather_rows(const float*, RowShape, Indices, double, std::int32_t*);
template void gather_rows(const float*, RowShape, Indices, double, std::int64_t*);
template void gather_rows(const float*, RowShape, Indices, double, std::uint8_t*);
template void gather_rows(const double*, RowShape, Indices, double, float*);
template void gather_rows(const double*, RowShape, Indices, double, double*);
template void gather_rows(const double*, RowShape, Indices, double, std::int32_t*);
template void gather_rows(const double*, RowShape, Indices, double, std::int64_t*);
template void gather_rows(const double*, RowShape, Indices, double, std::uint8_t*);

using RowPointers = std::span<const void* const>;
template void gather_rows<std::uint8_t>(RowPointers, std::uint64_t, double, float*);
template void gather_rows<std::uint8_t>(RowPointers, std::uint64_t, double, double*);
template void gather_rows<std::uint8_t>(RowPointers, std::uint64_t, double, std::int32_t*);
template void gather_rows<std::uint8_t>(RowPointers, std::uint64_t, double, std::int64_t*);
template void gather_rows<std::uint8_t>(RowPointers, std::uint64_t, double, std::uint8_t*);
template void gather_rows<std::int32_t>(RowPointers, std::uint64_t, double, float*);
template void gather_rows<std::int32_t>(RowPointers, std::uint64_t, double, double*);
template void gather_rows<std::int32_t>(RowPointers, std::uint64_t, double, std::int32_t*);
template void gather_rows<std::int32_t>(RowPointers, std::uint64_t, double, std::int64_t*);
template void gather_rows<std::int32_t>(RowPointers, std::uint64_t, double, std::uint8_t*);
template void gather_rows<std::int64_t>(RowPointers, std::uint64_t, double, float*);
template void gather_rows<std::int64_t>(RowPointers, std::uint64_t, double, double*);
template void gather_rows<std::int64_t>(RowPointers, std::uint64_t, double, std::int32_t*);
template void gather_rows<std::int64_t>(RowPointers, std::uint64_t, double, std::int64_t*);
template void gather_rows<std::int64_t>(RowPointers, std::uint64_t, double, std::uint8_t*);
template void gather_rows<float>(RowPointers, std::uint64_t, double, float*);
template void gather_rows<float>(RowPointers, std::uint64_t, double, double*);
template void gather_rows<float>(RowPointers, std::uint64_t, double, std::int32_t*);
template void gather_rows<float>(RowPointers, std::uint64_t, double, std::int64_t*);
template void gather_rows<float>(RowPointers, std::uint64_t, double, std::uint8_t*);
template void gather_rows<double>(RowPointers, std::uint64_t, double, float*);
template void gather_rows<double>(RowPointers, std::uint64_t, double, double*);
template void gather_rows<double>(RowPointers, std::uint64_t, double, std::int32_t*);
template void gather_rows<double>(RowPointers, std::uint64_t, double, std::int64_t*);
template void gather_rows<double>(RowPointers, std::uint64_t, double, std::uint8_t*);

template Range<std::uint8_t> range_of(std::span<const std::uint8_t>);
template Range<std::int32_t> range_of(std::span<const std::int32_t>);
template Range<std::int64_t> range_of(std::span<const std::int64_t>);

}  // namespace disttrain::input
