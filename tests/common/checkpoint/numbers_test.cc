#include "common/checkpoint/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace disttrain::checkpoint {
namespace {

template <typename T>
std::vector<T> stored(DType dtype, const std::vector<float>& values) {
  std::vector<T> out(values.size());
  from_floats(dtype, values, std::as_writable_bytes(std::span(out)));
  return out;
}

template <typename T>
std::vector<float> floats(DType dtype, const std::vector<T>& values) {
  std::vector<float> out(values.size());
  to_floats(dtype, std::as_bytes(std::span(values)), out);
  return out;
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kNoLimit = std::numeric_limits<float>::infinity();

TEST(NumbersTest, IntegersAreRoundedAndKeptInTheirRange) {
  const std::vector<float> values = {0.0F, 2.5F, 3.5F, -1.4F, 1e20F, -kNoLimit, kNaN};
  EXPECT_EQ(stored<std::int64_t>(DType::kI64, values),
            (std::vector<std::int64_t>{0, 2, 4, -1, std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min(), 0}));
  EXPECT_EQ(stored<std::uint8_t>(DType::kU8, values), (std::vector<std::uint8_t>{0, 2, 4, 0, 255, 0, 0}));
  EXPECT_EQ(stored<std::int8_t>(DType::kI8, values), (std::vector<std::int8_t>{0, 2, 4, -1, 127, -128, 0}));
  EXPECT_EQ(stored<std::uint64_t>(DType::kU64, values),
            (std::vector<std::uint64_t>{0, 2, 4, 0, std::numeric_limits<std::uint64_t>::max(), 0, 0}));
  EXPECT_EQ(stored<std::uint8_t>(DType::kBool, {0.0F, 0.4F, 1.0F, -2.0F}), (std::vector<std::uint8_t>{0, 0, 1, 1}));
}

TEST(NumbersTest, CountersAreExactUpTo2To24) {
  for (const std::int64_t count : {0L, 1L, 469L, 16'777'215L, 16'777'216L}) {
    EXPECT_EQ(stored<std::int64_t>(DType::kI64, {static_cast<float>(count)})[0], count);
    EXPECT_EQ(floats<std::int64_t>(DType::kI64, {count})[0], static_cast<float>(count));
  }
  EXPECT_EQ(floats<std::int64_t>(DType::kI64, {16'777'217})[0], 16'777'216.0F);
}

TEST(NumbersTest, DoublesAreRoundedToNearest) {
  EXPECT_EQ(floats<double>(DType::kF64, {0.1, -1e300}), (std::vector<float>{0.1F, -kNoLimit}));
  EXPECT_EQ(stored<double>(DType::kF64, {0.1F})[0], static_cast<double>(0.1F));
}

TEST(NumbersTest, HalvesAndBooleansAreRead) {
  EXPECT_EQ(floats<std::uint16_t>(DType::kF16, {0x3c00, 0xc000}), (std::vector<float>{1.0F, -2.0F}));
  EXPECT_EQ(floats<std::uint16_t>(DType::kBF16, {0x3f80}), std::vector<float>{1.0F});
  EXPECT_EQ(floats<std::uint8_t>(DType::kBool, {0, 1, 7}), (std::vector<float>{0.0F, 1.0F, 1.0F}));
}

TEST(NumbersTest, FloatsOf8BitsAndComplexNumbersAreNotConvertible) {
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2, DType::kF8E8M0, DType::kC64})
    EXPECT_FALSE(is_convertible(dtype));
}

}  // namespace
}  // namespace disttrain::checkpoint
