#include "common/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <vector>

namespace disttrain {
namespace {

// The published vectors of philox4x32 with 10 rounds (Random123, tests/kat_vectors).
TEST(Philox, KnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedIsTheKeyIndexAndStreamAreTheCounter) {
  EXPECT_EQ(random_block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Normals, AreBoxMullerOfTheBlock) {
  for (std::uint64_t index = 0; index < 20000; ++index) {
    const PhiloxBlock block = random_block(7, 11, index);
    const std::array<double, 4> normals = normals_of(block);
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2.0 * std::log((block[pair] + 0.5) / 4294967296.0));
      const double angle = 2.0 * std::numbers::pi * (block[pair + 1] / 4294967296.0);
      ASSERT_NEAR(normals[pair], radius * std::cos(angle), 1e-14);
      ASSERT_NEAR(normals[pair + 1], radius * std::sin(angle), 1e-14);
    }
  }
}

TEST(Normals, ExtremeWordsStayFinite) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  for (std::uint32_t magnitude : {0u, 1u, 0x7fffffffu, 0x80000000u, kOnes - 1, kOnes}) {
    for (std::uint32_t angle : {0u, 0x1fffffffu, 0x20000000u, 0x40000000u, 0x80000000u, 0xc0000000u, kOnes}) {
      for (double normal : normals_of({magnitude, angle, angle, magnitude})) {
        EXPECT_TRUE(std::isfinite(normal));
        EXPECT_LT(std::abs(normal), 6.8);
      }
    }
  }
}

// Compares bits: another compiler, vector width or math library must not change the initial values of a job.
TEST(Normals, BitsAreFixed) {
  const std::array<double, 4> normals = normals_of(random_block(1, 2, 3));
  EXPECT_EQ(normals[0], -0x1.b8cea90319c19p-2);
  EXPECT_EQ(normals[1], 0x1.42d10558b0a92p-2);
  EXPECT_EQ(normals[2], -0x1.eb18c286b3e49p-5);
  EXPECT_EQ(normals[3], -0x1.209d11c65084fp+0);
}

TEST(Random, ReadsTheBlocksOfItsStreamInOrder) {
  Random random(5, 6);
  for (std::uint64_t index = 0; index < 3; ++index)
    for (std::uint32_t word : random_block(5, 6, index)) EXPECT_EQ(random(), word);
}

TEST(Random, OtherSeedsAndStreamsGiveOtherBits) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t stream = 0; stream < 10; ++stream) firsts.insert(Random(seed, stream).bits64());
  EXPECT_EQ(firsts.size(), 100u);
}

TEST(Random, PurposesAndNumbersGiveOtherStreams) {
  EXPECT_NE(stream_of("shuffle", 0), stream_of("shuffle", 1));
  EXPECT_NE(stream_of("shuffle", 0), stream_of("dropout", 0));
  EXPECT_EQ(stream_of("shuffle"), stream_of("shuffle", 0));
}

TEST(Random, BelowIsUniformAndStaysBelow) {
  Random random(3);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70000; ++i) {
    const std::uint64_t value = random.below(7);
    ASSERT_LT(value, 7u);
    ++counts[value];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000, 400);  // 4 standard deviations
  EXPECT_EQ(random.below(1), 0u);
  constexpr std::uint64_t kHuge = 0xffff'ffff'ffff'ffff;
  EXPECT_LT(random.below(kHuge), kHuge);
}

TEST(Random, UniformHasTheRightMeanAndStaysBelowOne) {
  Random random(4);
  double sum = 0.0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.004);
}

}  // namespace
}  // namespace disttrain
