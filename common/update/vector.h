// Sums, checks and norms of gradients. Each function makes one pass over memory. All spans of a call must have the same
// size and must not overlap. T is the type of the values: float, unless the caller says double, as in
// all_finite<double>(values). All arithmetic is done in this type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "common/update/vector_width.h"

namespace disttrain::update {

// The gradient of a worker, with its weight in the mean. The weight is 1 if all batches are equally large, else the
// number of examples.
template <typename T>
struct WeightedGradientOf {
  std::span<const T> values;
  T weight = 1;
};
using WeightedGradient = WeightedGradientOf<float>;

// Parameters of these types accept everything that converts to the span. The compiler doesn't deduce T from them.
template <typename T>
using Values = std::type_identity_t<std::span<T>>;
template <typename T>
using ConstValues = std::type_identity_t<std::span<const T>>;
template <typename T>
using WeightedGradients = std::type_identity_t<std::span<const WeightedGradientOf<T>>>;

// sum[i] += weight * gradient[i]
template <typename T = float>
void add_weighted(Values<T> sum, ConstValues<T> gradient, std::type_identity_t<T> weight,
                  VectorWidth width = best_vector_width());

// Sets out[i] to the weighted sum of element first + i over all gradients. The gradients are added in the order of the
// span, and each addition rounds to T. So the result has the same bits as writing weight * values of the first
// gradient to `out` and then calling add_weighted() for each other gradient. At least one gradient is needed. The work
// is done in blocks that stay in the L1 cache.
template <typename T = float>
void weighted_sum(Values<T> out, WeightedGradients<T> gradients, std::size_t first = 0,
                  VectorWidth width = best_vector_width());

// average[i] = keep * average[i] + (1 - keep) * values[i]. Both factors are computed in double and rounded to T.
template <typename T = float>
void move_average(Values<T> average, ConstValues<T> values, double keep, VectorWidth width = best_vector_width());

// The largest magnitude, 0 for no values. It is a NaN or an infinity if there is one among the values.
template <typename T = float>
T largest_magnitude(ConstValues<T> values, VectorWidth width = best_vector_width());

// No NaN and no infinity.
template <typename T = float>
bool all_finite(ConstValues<T> values, VectorWidth width = best_vector_width());

// Computes the squared Euclidean norm of all values that add() gets, with numbers of type double. The norm of
// floats is finite if and only if all values are finite, because a double can hold the exact square of a finite float,
// and the sum can't overflow. The norm of doubles is infinite, too, if a value is larger than about 1e154.
//
// The order of the additions is fixed. So the bits don't depend on the vector width or on how the values are split into
// calls of add(). Value i, counted over all calls, is added to partial sum i mod 16. At the end the 16 partial sums are
// added in pairs: j and j + 8, then j and j + 4, then j and j + 2, then j and j + 1.
class SquaredNorm {
 public:
  static constexpr std::size_t kLanes = 16;

  explicit SquaredNorm(VectorWidth width = best_vector_width()) : width_(width) {}

  template <typename T = float>
  void add(ConstValues<T> values);
  double value() const;

 private:
  VectorWidth width_;
  std::size_t next_lane_ = 0;
  alignas(64) std::array<double, kLanes> lanes_{};
};

template <typename T = float>
double squared_norm(ConstValues<T> values, VectorWidth width = best_vector_width());

// Returns the squared norm of scale * weighted_sum(gradients), which clip = "global_norm" needs before a step can be
// committed. The scale is applied to the norm, in double. Also writes weighted_sum(gradients) to `sums`, for the step
// itself. Both are computed block by block, so that a block is still in the cache when it is read again.
template <typename T = float>
double squared_norm_of_sum(WeightedGradients<T> gradients, double scale, Values<T> sums,
                           VectorWidth width = best_vector_width());

}  // namespace disttrain::update
