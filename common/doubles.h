// Views of float64 values in arrays of words. See common/layout.h for the words.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "common/dtype.h"

namespace disttrain {

// The doubles in these words. The words must begin at a multiple of 8 bytes, and their number must be even. Nobody may
// read or write the same words as floats, except to copy them.
inline std::span<double> as_doubles(std::span<float> words) {
  return {reinterpret_cast<double*>(words.data()), words.size() / 2};
}

inline std::span<const double> as_doubles(std::span<const float> words) {
  return {reinterpret_cast<const double*>(words.data()), words.size() / 2};
}

// The elements of type T, float or double, in these words.
template <typename T>
std::span<T> values_in(std::span<float> words) {
  if constexpr (std::is_same_v<T, double>)
    return as_doubles(words);
  else
    return words;
}

template <typename T>
std::span<const T> values_in(std::span<const float> words) {
  if constexpr (std::is_same_v<T, double>)
    return as_doubles(words);
  else
    return words;
}

// Calls body(T()), where T is the type of a variable's elements: double for kFloat64, else float.
template <typename Body>
decltype(auto) with_type(DType dtype, const Body& body) {
  return dtype == DType::kFloat64 ? body(double()) : body(float());
}

// The index of the first element in these words that is NaN or infinite.
inline std::optional<std::uint64_t> first_nonfinite(std::span<const float> words, DType dtype) {
  return with_type(dtype, [words]<typename T>(T) -> std::optional<std::uint64_t> {
    const std::span<const T> values = values_in<T>(words);
    const auto bad = std::find_if(values.begin(), values.end(), [](T value) { return !std::isfinite(value); });
    if (bad == values.end()) return std::nullopt;
    return static_cast<std::uint64_t>(bad - values.begin());
  });
}

}  // namespace disttrain
