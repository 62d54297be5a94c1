// Sums, checks and norms over spans of float32 gradients. One pass over memory each. The spans of a call have one size
// and don't overlap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/update/vector_width.h"

namespace disttrain::update {

// A worker's gradient and its weight in the mean: 1 each when all batches are equal, else its examples.
struct WeightedGradient {
  std::span<const float> values;
  float weight = 1.0F;
};

// sum[i] += weight * gradient[i]
void add_weighted(std::span<float> sum, std::span<const float> gradient, float weight,
                  VectorWidth width = best_vector_width());

// out[i] = sum over the gradients, in their order, of weight * values[first + i], rounded to float32 after each one.
// The bits equal those of filling `out` with weight * values of the first gradient and then calling add_weighted for
// each other one. At least one gradient. Written in blocks that stay in the L1 cache.
void weighted_sum(std::span<float> out, std::span<const WeightedGradient> gradients, std::size_t first = 0,
                  VectorWidth width = best_vector_width());

// No NaN and no infinity.
bool all_finite(std::span<const float> values, VectorWidth width = best_vector_width());

// The squared Euclidean norm of the added values, in double, and whether all were finite: squares of finite floats are
// exact in double and their sum can't overflow, so the norm is finite if and only if all values are.
//
// The order of the sum is fixed, so the bits don't depend on the vector width or on how the values are cut into calls
// of add(): the value at position i (counted over all calls) goes to partial sum i mod 16, in ascending order, and the
// 16 partial sums are added pairwise: j and j + 8, then j and j + 4, j + 2, j + 1.
class SquaredNorm {
 public:
  static constexpr std::size_t kLanes = 16;

  explicit SquaredNorm(VectorWidth width = best_vector_width()) : width_(width) {}

  void add(std::span<const float> values);
  double value() const;

 private:
  VectorWidth width_;
  std::size_t next_lane_ = 0;
  alignas(64) std::array<double, kLanes> lanes_{};
};

double squared_norm(std::span<const float> values, VectorWidth width = best_vector_width());

// The squared norm of scale * weighted_sum(gradients): `clip = global_norm` needs it before a step is committed. The
// scale is applied to the norm, in double. Also writes weighted_sum(gradients) to `sums` for the step itself, block by
// block, while a block is in the cache.
double squared_norm_of_sum(std::span<const WeightedGradient> gradients, double scale, std::span<float> sums,
                           VectorWidth width = best_vector_width());

}  // namespace disttrain::update
