#include "common/update/vector.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"

namespace disttrain::update {
namespace {

// 4096 float32 values are 16 KiB, which is half of an L1 cache.
constexpr std::size_t kSpanBlock = 4096;

struct AddWeighted {
  float weight;
  DISTTRAIN_INLINE_BODY void operator()(float* __restrict sum, const float* __restrict gradient, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) sum[i] += weight * gradient[i];
  }
};

struct Scale {
  float weight;
  DISTTRAIN_INLINE_BODY void operator()(float* __restrict out, const float* __restrict gradient, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) out[i] = weight * gradient[i];
  }
};

// Finds the largest magnitude by comparing the bits of the magnitudes as integers. Infinities and NaNs have larger bits
// than all other values.
struct LargestBits {
  DISTTRAIN_INLINE_BODY void operator()(const float* __restrict values, std::size_t n,
                                        std::uint32_t* __restrict largest) const {
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, values + i, sizeof bits);
      most = std::max(most, bits & 0x7fff'ffffu);
    }
    *largest = most;
  }
};

// n is a multiple of the lanes.
struct AddSquares {
  DISTTRAIN_INLINE_BODY void operator()(const float* __restrict values, std::size_t n, double* __restrict lanes) const {
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

void add_weighted(std::span<float> sum, std::span<const float> gradient, float weight, VectorWidth width) {
  DISTTRAIN_CHECK_EQ(gradient.size(), sum.size());
  run(width, AddWeighted{weight}, sum.data(), gradient.data(), sum.size());
}

void weighted_sum(std::span<float> out, std::span<const WeightedGradient> gradients, std::size_t first,
                  VectorWidth width) {
  DISTTRAIN_CHECK_GE(gradients.size(), 1u);
  for (const WeightedGradient& gradient : gradients) DISTTRAIN_CHECK_LE(first + out.size(), gradient.values.size());
  for (std::size_t begin = 0; begin < out.size(); begin += kSpanBlock) {
    const std::span<float> block = out.subspan(begin, std::min(kSpanBlock, out.size() - begin));
    const float* leading = gradients[0].values.data() + first + begin;
    run(width, Scale{gradients[0].weight}, block.data(), leading, block.size());
    for (const WeightedGradient& gradient : gradients.subspan(1))
      add_weighted(block, gradient.values.subspan(first + begin, block.size()), gradient.weight, width);
  }
}

bool all_finite(std::span<const float> values, VectorWidth width) {
  std::uint32_t largest = 0;
  run(width, LargestBits{}, values.data(), values.size(), &largest);
  return largest < 0x7f80'0000u;
}

void SquaredNorm::add(std::span<const float> values) {
  const auto add_singly = [this](std::span<const float> few) {
    for (float value : few) {
      lanes_[next_lane_] += static_cast<double>(value) * static_cast<double>(value);
      next_lane_ = (next_lane_ + 1) % kLanes;
    }
  };
  const std::size_t head = std::min(values.size(), (kLanes - next_lane_) % kLanes);
  add_singly(values.first(head));
  values = values.subspan(head);
  const std::size_t body = values.size() - values.size() % kLanes;
  if (body > 0) run(width_, AddSquares{}, values.data(), body, lanes_.data());
  add_singly(values.subspan(body));
}

double SquaredNorm::value() const {
  std::array<double, kLanes> sums = lanes_;
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

double squared_norm(std::span<const float> values, VectorWidth width) {
  SquaredNorm norm(width);
  norm.add(values);
  return norm.value();
}

double squared_norm_of_sum(std::span<const WeightedGradient> gradients, double scale, std::span<float> sums,
                           VectorWidth width) {
  DISTTRAIN_CHECK_GE(gradients.size(), 1u);
  DISTTRAIN_CHECK_EQ(sums.size(), gradients[0].values.size());
  SquaredNorm norm(width);
  for (std::size_t begin = 0; begin < sums.size(); begin += kSpanBlock) {
    const std::span<float> part = sums.subspan(begin, std::min(kSpanBlock, sums.size() - begin));
    weighted_sum(part, gradients, begin, width);
    norm.add(part);
  }
  return scale * scale * norm.value();
}

}  // namespace disttrain::update
