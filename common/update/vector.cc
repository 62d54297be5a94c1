#include "common/update/vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/check.h"

namespace disttrain::update {
namespace {

// 16 KiB, which is half of an L1 cache.
template <typename T>
constexpr std::size_t kSpanBlock = 16 * 1024 / sizeof(T);

template <typename T>
struct AddWeighted {
  T weight;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict sum, const T* __restrict gradient, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) sum[i] += weight * gradient[i];
  }
};

template <typename T>
struct Scale {
  T weight;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict out, const T* __restrict gradient, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) out[i] = weight * gradient[i];
  }
};

template <typename T>
struct MoveAverage {
  T keep;
  T rest;
  DISTTRAIN_INLINE_BODY void operator()(T* __restrict average, const T* __restrict values, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) average[i] = keep * average[i] + rest * values[i];
  }
};

// An unsigned integer of the size of T.
template <typename T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<double> {
  using Type = std::uint64_t;
};

// Finds the largest magnitude by comparing the bits of the magnitudes as integers. Infinities and NaNs have larger bits
// than all other values. A single maximum would be one chain of operations that wait for each other.
template <typename T>
struct LargestBits {
  using Bits = typename BitsOf<T>::Type;
  static constexpr std::size_t kLanes = 128 / sizeof(T);
  DISTTRAIN_INLINE_BODY void operator()(const T* __restrict values, std::size_t n, Bits* __restrict largest) const {
    Bits most[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) most[lane] = std::max(most[lane], bits_of(values + i + lane));
    for (; i < n; ++i) most[0] = std::max(most[0], bits_of(values + i));
    *largest = *std::max_element(most, most + kLanes);
  }

 private:
  DISTTRAIN_INLINE_BODY static Bits bits_of(const T* value) {
    Bits bits;
    std::memcpy(&bits, value, sizeof bits);
    return bits & std::numeric_limits<Bits>::max() >> 1;
  }
};

// n is a multiple of the lanes.
template <typename T>
struct AddSquares {
  DISTTRAIN_INLINE_BODY void operator()(const T* __restrict values, std::size_t n, double* __restrict lanes) const {
    double sums[SquaredNorm::kLanes];
    for (std::size_t lane = 0; lane < SquaredNorm::kLanes; ++lane) sums[lane] = lanes[lane];
    for (std::size_t i = 0; i < n; i += SquaredNorm::kLanes) {
      for (std::size_t lane = 0; lane < SquaredNorm::kLanes; ++lane) {
        const double value = values[i + lane];
        sums[lane] += value * value;
      }
    }
    for (std::size_t lane = 0; lane < SquaredNorm::kLanes; ++lane) lanes[lane] = sums[lane];
  }
};

}  // namespace

template <typename T>
void add_weighted(Values<T> sum, ConstValues<T> gradient, std::type_identity_t<T> weight, VectorWidth width) {
  DISTTRAIN_CHECK_EQ(gradient.size(), sum.size());
  run(width, AddWeighted<T>{weight}, sum.data(), gradient.data(), sum.size());
}

template <typename T>
void weighted_sum(Values<T> out, WeightedGradients<T> gradients, std::size_t first, VectorWidth width) {
  DISTTRAIN_CHECK_GE(gradients.size(), 1u);
  for (const auto& gradient : gradients) DISTTRAIN_CHECK_LE(first + out.size(), gradient.values.size());
  for (std::size_t begin = 0; begin < out.size(); begin += kSpanBlock<T>) {
    const std::span<T> block = out.subspan(begin, std::min(kSpanBlock<T>, out.size() - begin));
    const T* leading = gradients[0].values.data() + first + begin;
    run(width, Scale<T>{gradients[0].weight}, block.data(), leading, block.size());
    for (const auto& gradient : gradients.subspan(1))
      add_weighted<T>(block, gradient.values.subspan(first + begin, block.size()), gradient.weight, width);
  }
}

template <typename T>
void move_average(Values<T> average, ConstValues<T> values, double keep, VectorWidth width) {
  DISTTRAIN_CHECK_EQ(values.size(), average.size());
  const MoveAverage<T> body{static_cast<T>(keep), static_cast<T>(1.0 - keep)};
  run(width, body, average.data(), values.data(), average.size());
}

template <typename T>
T largest_magnitude(ConstValues<T> values, VectorWidth width) {
  typename BitsOf<T>::Type largest = 0;
  run(width, LargestBits<T>{}, values.data(), values.size(), &largest);
  return std::bit_cast<T>(largest);
}

template <typename T>
bool all_finite(ConstValues<T> values, VectorWidth width) {
  return std::isfinite(largest_magnitude<T>(values, width));
}

template <typename T>
void SquaredNorm::add(ConstValues<T> values) {
  const auto add_singly = [this](std::span<const T> few) {
    for (T value : few) {
      lanes_[next_lane_] += static_cast<double>(value) * static_cast<double>(value);
      next_lane_ = (next_lane_ + 1) % kLanes;
    }
  };
  const std::size_t head = std::min(values.size(), (kLanes - next_lane_) % kLanes);
  add_singly(values.first(head));
  values = values.subspan(head);
  const std::size_t body = values.size() - values.size() % kLanes;
  if (body > 0) run(width_, AddSquares<T>{}, values.data(), body, lanes_.data());
  add_singly(values.subspan(body));
}

double SquaredNorm::value() const {
  std::array<double, kLanes> sums = lanes_;
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

template <typename T>
double squared_norm(ConstValues<T> values, VectorWidth width) {
  SquaredNorm norm(width);
  norm.add<T>(values);
  return norm.value();
}

template <typename T>
double squared_norm_of_sum(WeightedGradients<T> gradients, double scale, Values<T> sums, VectorWidth width) {
  DISTTRAIN_CHECK_GE(gradients.size(), 1u);
  DISTTRAIN_CHECK_EQ(sums.size(), gradients[0].values.size());
  SquaredNorm norm(width);
  for (std::size_t begin = 0; begin < sums.size(); begin += kSpanBlock<T>) {
    const std::span<T> part = sums.subspan(begin, std::min(kSpanBlock<T>, sums.size() - begin));
    weighted_sum<T>(part, gradients, begin, width);
    norm.add<T>(part);
  }
  return scale * scale * norm.value();
}

// The two types that values may have.
#define DISTTRAIN_INSTANTIATE(T)                                                                                 \
  template void add_weighted<T>(std::span<T>, std::span<const T>, T, VectorWidth);                               \
  template void weighted_sum<T>(std::span<T>, std::span<const WeightedGradientOf<T>>, std::size_t, VectorWidth); \
  template void move_average<T>(std::span<T>, std::span<const T>, double, VectorWidth);                          \
  template T largest_magnitude<T>(std::span<const T>, VectorWidth);                                              \
  template bool all_finite<T>(std::span<const T>, VectorWidth);                                                  \
  template void SquaredNorm::add<T>(std::span<const T>);                                                         \
  template double squared_norm<T>(std::span<const T>, VectorWidth);                                              \
  template double squared_norm_of_sum<T>(std::span<const WeightedGradientOf<T>>, double, std::span<T>, VectorWidth);
DISTTRAIN_INSTANTIATE(float)
DISTTRAIN_INSTANTIATE(double)
#undef DISTTRAIN_INSTANTIATE

}  // namespace disttrain::update
