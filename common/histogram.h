// A histogram: counts values in ranges with fixed bounds. Use it from one thread; readers get a copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace disttrain {

// kBounds is an array of ascending upper bounds. A bucket counts the values up to and including its bound. One more
// bucket counts the values above the last bound.
template <const auto& kBounds>
class Histogram {
 public:
  static constexpr std::size_t kBuckets = kBounds.size() + 1;

  // `value` must not be NaN.
  void observe(double value) {
    std::size_t i = 0;
    while (i < kBounds.size() && value > kBounds[i]) ++i;
    ++counts_[i];
    sum_ += value;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
  }

  static constexpr const auto& bounds() { return kBounds; }
  // The number of values in each bucket alone, without those of lower buckets.
  const std::array<std::uint64_t, kBuckets>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  double sum_ = 0.0;
};

inline constexpr std::array<double, 14> kSecondsBounds = {.001, .0025, .005, .01, .025, .05, .1,
                                                          .25,  .5,    1,    2.5, 5,    10,  30};
inline constexpr std::array<double, 8> kStepsBounds = {0, 1, 2, 4, 8, 16, 32, 64};

using SecondsHistogram = Histogram<kSecondsBounds>;
using StepsHistogram = Histogram<kStepsBounds>;

}  // namespace disttrain
