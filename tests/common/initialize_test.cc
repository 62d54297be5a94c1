#include "common/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/random.h"

namespace disttrain {
namespace {

VariableSpec variable(Initializer initializer, std::vector<std::uint64_t> shape = {300, 401}) {
  return VariableSpec{.name = "dense/0/weight",
                      .shape = std::move(shape),
                      .kind = VariableKind::kTrainable,
                      .initializer = initializer,
                      .fan_in = 401,
                      .fan_out = 300};
}

std::vector<float> values_of(const VariableSpec& spec, std::uint64_t seed) {
  std::vector<float> values(element_count(spec), -1.0F);
  initialize(spec, seed, 0, values);
  return values;
}

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
  double largest = 0.0;
};

Moments moments_of(const std::vector<float>& values) {
  Moments moments;
  for (float value : values) {
    moments.mean += value / static_cast<double>(values.size());
    moments.largest = std::max(moments.largest, std::abs(static_cast<double>(value)));
  }
  double squares = 0.0;
  for (float value : values) squares += (value - moments.mean) * (value - moments.mean);
  moments.deviation = std::sqrt(squares / static_cast<double>(values.size()));
  return moments;
}

TEST(Initialize, ZerosAreZero) {
  for (float value : values_of(variable({InitializerKind::kZeros, 0.0}), 1)) ASSERT_EQ(value, 0.0F);
}

TEST(Initialize, OnesAreOne) {
  for (float value : values_of(variable({InitializerKind::kOnes, 0.0}), 1)) ASSERT_EQ(value, 1.0F);
}

TEST(Initialize, UniformKeepsItsLimit) {
  const Moments moments = moments_of(values_of(variable({InitializerKind::kUniform, 0.25}), 1));
  EXPECT_NEAR(moments.mean, 0.0, 0.001);
  EXPECT_NEAR(moments.deviation, 0.25 / std::sqrt(3.0), 0.001);
  EXPECT_LE(moments.largest, 0.25);
  EXPECT_GT(moments.largest, 0.25 * 0.999);
}

TEST(Initialize, NormalHasItsDeviation) {
  const Moments moments = moments_of(values_of(variable({InitializerKind::kNormal, 0.5}), 1));
  EXPECT_NEAR(moments.mean, 0.0, 0.006);
  EXPECT_NEAR(moments.deviation, 0.5, 0.005);
  EXPECT_GT(moments.largest, 0.5 * 3.8);  // 120,300 draws
}

TEST(Initialize, HeIsNormalByFanIn) {
  const Moments moments = moments_of(values_of(variable({InitializerKind::kHe, 0.0}), 1));
  EXPECT_NEAR(moments.mean, 0.0, 0.001);
  EXPECT_NEAR(moments.deviation, std::sqrt(2.0 / 401), 0.001);
}

TEST(Initialize, GlorotIsUniformWithinItsLimit) {
  const double limit = std::sqrt(6.0 / 701);
  const Moments moments = moments_of(values_of(variable({InitializerKind::kGlorot, 0.0}), 1));
  EXPECT_NEAR(moments.mean, 0.0, 0.001);
  EXPECT_NEAR(moments.deviation, limit / std::sqrt(3.0), 0.001);
  EXPECT_LE(moments.largest, static_cast<float>(limit));
  EXPECT_GT(moments.largest, limit * 0.999);
}

// The placement of variables on shards relies on this rule: the initial values have the same bits, however the
// variables are split.
TEST(Initialize, AnySplitGivesTheSameBits) {
  Random random(2026);
  for (InitializerKind kind : {InitializerKind::kNormal, InitializerKind::kHe, InitializerKind::kGlorot}) {
    const VariableSpec spec = variable({kind, 1.0}, {37, 29});
    const std::vector<float> whole = values_of(spec, 9);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> parts(whole.size(), -1.0F);
      for (std::size_t begin = 0; begin < parts.size();) {
        const std::size_t size = std::min<std::size_t>(parts.size() - begin, random.below(50));
        initialize(spec, 9, begin, std::span(parts).subspan(begin, size));
        begin += size;
      }
      ASSERT_EQ(parts, whole);
    }
  }
}

TEST(Initialize, SeedAndNameMakeOtherValues) {
  VariableSpec spec = variable({InitializerKind::kNormal, 1.0}, {100});
  const std::vector<float> first = values_of(spec, 1);
  EXPECT_NE(first, values_of(spec, 2));
  spec.name = "dense/1/weight";
  EXPECT_NE(first, values_of(spec, 1));
}

TEST(Initialize, ElementsOfANormalAreTheBlocksNormals) {
  const VariableSpec spec = variable({InitializerKind::kNormal, 2.0}, {8});
  const std::vector<float> values = values_of(spec, 42);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto normals = normals_of(random_block(42, stream_of("initial value of dense/0/weight"), i / 4));
    EXPECT_EQ(values[i], static_cast<float>(normals[i % 4] * 2.0));
  }
}

TEST(InitializeDeathTest, BeyondTheVariableIsABug) {
  const VariableSpec spec = variable({InitializerKind::kZeros, 0.0}, {8});
  std::vector<float> out(5);
  EXPECT_DEATH(initialize(spec, 1, 4, out), "check failed");
}

}  // namespace
}  // namespace disttrain
