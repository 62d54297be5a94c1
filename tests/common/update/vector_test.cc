#include "common/update/vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/random.h"
#include "tests/common/update/widths.h"

namespace disttrain::update {
namespace {

std::vector<float> random_values(std::uint64_t seed, std::size_t size) {
  Random random(seed, stream_of("vector test"));
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>((random.uniform() - 0.5) * 8.0);
  return values;
}

// The documented order, computed naively.
double naive_squared_norm(const std::vector<float>& values) {
  double lanes[16] = {};
  for (std::size_t i = 0; i < values.size(); ++i)
    lanes[i % 16] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (int half : {8, 4, 2, 1})
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

TEST(AddWeighted, AddsAtEveryLengthAndWidth) {
  for (VectorWidth width : available_widths()) {
    for (std::size_t size : {0u, 1u, 7u, 8u, 31u, 64u, 1001u}) {
      const auto gradient = random_values(size, size);
      auto sum = random_values(size + 1, size);
      auto expected = sum;
      for (std::size_t i = 0; i < size; ++i) expected[i] += 0.3F * gradient[i];
      add_weighted(sum, gradient, 0.3F, width);
      ASSERT_EQ(sum, expected) << size;
    }
  }
}

TEST(WeightedSum, IsTheSumInOrderFromAnyPlace) {
  constexpr std::size_t kSize = 10007;  // more than two blocks
  const auto a = random_values(1, kSize);
  const auto b = random_values(2, kSize);
  const auto c = random_values(3, kSize);
  const std::vector<WeightedGradient> gradients{{a, 0.25F}, {b, 1.0F}, {c, 7.0F}};
  for (VectorWidth width : available_widths()) {
    for (std::size_t first : {0u, 5u, 5000u}) {
      std::vector<float> out(kSize - first, 99.0F);
      weighted_sum(out, gradients, first, width);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], (0.25F * a[first + i] + 1.0F * b[first + i]) + 7.0F * c[first + i]) << i;
    }
  }
}

TEST(WeightedSumDeathTest, BeyondAGradientIsABug) {
  const auto a = random_values(1, 10);
  const std::vector<WeightedGradient> gradients{{a, 1.0F}};
  std::vector<float> out(8);
  EXPECT_DEATH(weighted_sum(out, gradients, 3), "check failed");
}

TEST(AllFinite, FindsOneBadValueAnywhere) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (VectorWidth width : available_widths()) {
    for (std::size_t size : {1u, 15u, 16u, 17u, 67u}) {
      auto values = random_values(size, size);
      ASSERT_TRUE(all_finite(values, width));
      for (std::size_t at = 0; at < size; ++at) {
        for (float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
          const float kept = std::exchange(values[at], bad);
          ASSERT_FALSE(all_finite(values, width)) << at << " of " << size;
          values[at] = kept;
        }
      }
    }
  }
}

TEST(AllFinite, ExtremesAndNothingAreFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_TRUE(all_finite(std::vector<float>{kMax, -kMax, 0.0F, -0.0F, std::numeric_limits<float>::denorm_min()}));
  EXPECT_TRUE(all_finite({}));
}

TEST(SquaredNorm, HasTheDocumentedOrderAtEveryLengthAndWidth) {
  for (VectorWidth width : available_widths()) {
    for (std::size_t size : {0u, 1u, 15u, 16u, 17u, 100u, 1003u}) {
      const auto values = random_values(size, size);
      ASSERT_EQ(squared_norm(values, width), naive_squared_norm(values)) << size;
    }
  }
}

TEST(SquaredNorm, PiecesGiveTheSameBits) {
  const auto values = random_values(5, 3001);
  Random random(6);
  for (int round = 0; round < 50; ++round) {
    SquaredNorm norm;
    for (std::size_t begin = 0; begin < values.size();) {
      const std::size_t size = std::min<std::size_t>(values.size() - begin, random.below(90));
      norm.add(std::span(values).subspan(begin, size));
      begin += size;
    }
    ASSERT_EQ(norm.value(), naive_squared_norm(values));
  }
}

TEST(SquaredNorm, IsFiniteIfAndOnlyIfAllValuesAre) {
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(squared_norm(values)));
  values[777] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(squared_norm(values)));
  values[777] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(squared_norm(values)));
}

TEST(SquaredNormOfSum, WritesTheSumAndIsItsNorm) {
  constexpr std::size_t kSize = 9001;
  const auto a = random_values(1, kSize);
  const auto b = random_values(2, kSize);
  const std::vector<WeightedGradient> gradients{{a, 2.0F}, {b, 0.5F}};
  std::vector<float> sum(kSize);
  weighted_sum(sum, gradients);
  std::vector<float> written(kSize);
  EXPECT_EQ(squared_norm_of_sum(gradients, 0.5, written), 0.25 * naive_squared_norm(sum));
  EXPECT_EQ(written, sum);
}

TEST(MoveAverage, FollowsTheValuesAtEveryVectorWidth) {
  for (VectorWidth width : available_widths()) {
    std::vector<float> average(37, 1.0F);
    std::vector<float> values(37);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    move_average(average, values, 0.999, width);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(average[i], 0.999F * 1.0F + static_cast<float>(1.0 - 0.999) * values[i]) << "element " << i;
  }
}

}  // namespace
}  // namespace disttrain::update
