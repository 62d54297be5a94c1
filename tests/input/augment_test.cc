#include "input/augment.h"

#include <gtest/gtest.h>

#include "input/encode_images.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

constexpr ImageShape kImage{60, 40, 3};

TEST(Augment, PartLiesWithinTheImageAndHasTheRightAreaAndRatio) {
  double least = 1.0;
  double most = 0.0;
  for (std::uint64_t record = 0; record < 2000; ++record) {
    const ImagePart part = draw_part(kImage, {true, 7, 3}, record);
    ASSERT_GT(part.height, 0U);
    ASSERT_GT(part.width, 0U);
    ASSERT_LE(part.top + part.height, kImage.height);
    ASSERT_LE(part.left + part.width, kImage.width);
    const double area = static_cast<double>(part.height) * part.width / (60.0 * 40.0);
    least = std::min(least, area);
    most = std::max(most, area);
    const double ratio = static_cast<double>(part.width) / part.height;
    if (area < 1.0) {
      EXPECT_GT(ratio, 0.65);
      EXPECT_LT(ratio, 1.5);
    }
  }
  EXPECT_LT(least, 0.12);
  EXPECT_GT(most, 0.6);
}

TEST(Augment, DependsOnSeedEpochAndRecordAlone) {
  const auto same = [](const Draw& a, std::uint64_t i, const Draw& b, std::uint64_t j) {
    const ImagePart one = draw_part(kImage, a, i);
    const ImagePart other = draw_part(kImage, b, j);
    return one.top == other.top && one.left == other.left && one.width == other.width && one.height == other.height;
  };
  EXPECT_TRUE(same({true, 1, 2}, 3, {true, 1, 2}, 3));
  EXPECT_FALSE(same({true, 1, 2}, 3, {true, 1, 2}, 4));
  EXPECT_FALSE(same({true, 1, 2}, 3, {true, 1, 3}, 3));
  EXPECT_FALSE(same({true, 1, 2}, 3, {true, 2, 2}, 3));
}

TEST(Augment, HalfOfTheImagesAreMirrored) {
  int mirrored = 0;
  for (std::uint64_t record = 0; record < 10'000; ++record) mirrored += draw_mirrored({true, 7, 3}, record) ? 1 : 0;
  EXPECT_NEAR(mirrored, 5000, 250);  // five standard deviations
}

// The same image in an evaluation, and in training with and without a mirror.
TEST(ImageEncoder, ChangesImagesInTrainingOnly) {
  ColumnSection column;
  column.kind = ColumnKind::kImage;
  column.shape = {3, 29, 37};
  column.flip = true;
  const std::string file = read_whole(DISTTRAIN_TEST_DATA "/image/colour.png");
  const auto bytes = std::as_bytes(std::span(file));
  const ImageShape shape = image_shape(column);
  ImageEncoder encoder;
  std::vector<std::uint8_t> plain(shape.bytes());
  std::vector<std::uint8_t> changed(shape.bytes());
  ASSERT_TRUE(encoder.encode(column, bytes, {}, 0, plain));
  for (std::uint64_t record = 0; record < 20; ++record) {
    const Draw draw{true, 1, 0};
    ASSERT_TRUE(encoder.encode(column, bytes, draw, record, changed));
    if (!draw_mirrored(draw, record)) {
      EXPECT_EQ(changed, plain);
      continue;
    }
    for (std::size_t row = 0; row < 3 * 29; ++row)
      for (std::size_t x = 0; x < 37; ++x) ASSERT_EQ(changed[row * 37 + x], plain[row * 37 + 36 - x]);
  }
  column.crop = true;
  ASSERT_TRUE(encoder.encode(column, bytes, {true, 1, 0}, 1, changed));
  EXPECT_NE(changed, plain);
  ASSERT_TRUE(encoder.encode(column, bytes, {}, 1, changed));
  EXPECT_EQ(changed, plain);
}

}  // namespace
}  // namespace disttrain::input
