#include "common/checkpoint/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace disttrain::checkpoint {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Computes the value of a number's bits by the definition of IEEE 754.
float f16_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? HUGE_VAL : std::nan("");
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

TEST(Half, EveryF16IsWhatItsDefinitionSaysAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = from_f16(half);
    if (std::isnan(f16_by_definition(half))) {
      EXPECT_TRUE(std::isnan(value) && std::isnan(from_f16(to_f16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(f16_by_definition(half))) << bits;
    ASSERT_EQ(to_f16(value), half);
  }
}

TEST(Half, EveryBF16ComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(from_bf16(to_bf16(value)))) << bits;
    else
      ASSERT_EQ(to_bf16(value), bits);
  }
}

// Checks the rounding between each two neighbouring numbers: the middle is rounded to the even neighbour, and every
// other value to the nearer one.
void expect_nearest(std::uint32_t largest, float (*from)(std::uint16_t), std::uint16_t (*to)(float)) {
  for (std::uint32_t bits = 0; bits < largest; ++bits) {
    const float low = from(static_cast<std::uint16_t>(bits));
    const float high = from(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(to(middle), bits + (bits & 1)) << bits;
    ASSERT_EQ(to(std::nextafter(middle, kInfinity)), bits + 1) << bits;
    ASSERT_EQ(to(std::nextafter(middle, -kInfinity)), bits) << bits;
    ASSERT_EQ(to(-middle), (bits + (bits & 1)) | 0x8000) << bits;
  }
}

TEST(Half, RoundsToTheNearestOfTwoToTheEvenOne) {
  expect_nearest(0x7bff, from_f16, to_f16);
  expect_nearest(0x7f7f, from_bf16, to_bf16);
}

TEST(Half, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(to_f16(-1e30F), 0xfc00);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace disttrain::checkpoint
