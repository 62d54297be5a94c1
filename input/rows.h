// Copies scattered rows of values into one dense array. Most of the input thread's time is spent here. 100 rows of 784
// bytes take about 10 us as float32; half of that time is spent waiting for memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttrain::input {

// The rows of an array. Each begins `stride` values after the one before it, and has `elements` values that count.
struct RowShape {
  std::uint64_t elements = 0;
  std::uint64_t stride = 0;
};

// For each i, copies row indices[i] of `values` to row i of `out`, and converts it to the type of `out`. Values that
// become float or double are multiplied by `scale`; integers stay exact. `out` must have room for indices.size() rows
// of shape.elements values. T and Out are float, double, std::int32_t, std::int64_t or std::uint8_t.
template <typename T, typename Out>
void gather_rows(const T* values, RowShape shape, std::span<const std::uint64_t> indices, double scale, Out* out);

// The same for rows of T that are anywhere: row i of `out` comes from rows[i].
template <typename T, typename Out>
void gather_rows(std::span<const void* const> rows, std::uint64_t elements, double scale, Out* out);

// The smallest and the largest value of at least one value. T is an integer of those types.
template <typename T>
struct Range {
  T smallest{};
  T largest{};
};
template <typename T>
Range<T> range_of(std::span<const T> values);

// Whether no value is NaN or infinite.
bool are_finite(std::span<const float> values);

}  // namespace disttrain::input
