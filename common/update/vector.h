// Sums, checks and norms of float32 gradients. Each function makes one pass over memory. All spans of a call must have
// the same size and must not overlap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/update/vector_width.h"

namespace disttrain::update {

// The gradient of a worker, with its weight in the mean. The weight is 1 if all batches are equally large, else the
// number of examples.
struct WeightedGradient {
  std::span<const float> values;
  float weight = 1.0F;
};

// sum[i] += weight * gradient[i]
void add_weighted(std::span<float> sum, std::span<const float> gradient, float weight,
                  VectorWidth width = best_vector_width());

// Sets out[i] to the weighted sum of element first + i over all gradients. The gradients are added in the order of the
// span, and each addition rounds to float32. So the result has the same bits as writing weight * values of the first
// gradient to `out` and then calling add_weighted() for each other gradient. At least one gradient is needed. The work
// is done in blocks that stay in the L1 cache.
void weighted_sum(std::span<float> out, std::span<const WeightedGradient> gradients, std::size_t first = 0,
                  VectorWidth width = best_vector_width());

// No NaN and no infinity.
bool all_finite(std::span<const float> values, VectorWidth width = best_vector_width());

// Computes the squared Euclidean norm of all values that add() gets, with numbers of type double. The norm is finite if
// and only if all values are finite, because a double can hold the exact square of a finite float, and the sum can't
// overflow.
//
// The order of the additions is fixed. So the bits don't depend on the vector width or on how the values are split into
// calls of add(). Value i, counted over all calls, is added to partial sum i mod 16. At the end the 16 partial sums are
// added in pairs: j and j + 8, then j and j + 4, then j and j + 2, then j and j + 1.
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

// Returns the squared norm of scale * weighted_sum(gradients), which clip = "global_norm" needs before a step can be
// committed. The scale is applied to the norm, in double. Also writes weighted_sum(gradients) to `sums`, for the step
// itself. Both are computed block by block, so that a block is still in the cache when it is read again.
double squared_norm_of_sum(std::span<const WeightedGradient> gradients, double scale, std::span<float> sums,
                           VectorWidth width = best_vector_width());

}  // namespace disttrain::update
