// Counts values between given bounds: a plain value of one thread, copied to readers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace disttrain {

// kBounds: an array of ascending upper bounds, each included in its bucket; a last bucket takes larger values.
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
  // The count of each bucket, not cumulative.
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
