#include "input/augment.h"

#include <algorithm>
#include <cmath>

#include "common/random.h"

namespace disttrain::input {

namespace {

Random random_of(const char* purpose, const Draw& draw, std::uint64_t record) {
  return Random(draw.seed ^ draw.epoch * 0x9E3779B97F4A7C15u, stream_of(purpose, record));
}

}  // namespace

ImagePart draw_part(const ImageShape& image, const Draw& draw, std::uint64_t record) {
  Random random = random_of("crop", draw, record);
  const double area = static_cast<double>(image.height) * image.width;
  for (int turn = 0; turn < 10; ++turn) {
    const double wanted = area * (0.08 + 0.92 * random.uniform());
    // From 3/4 to 4/3. RandomResizedCrop draws the logarithm evenly. exp() differs between systems in the last bit,
    // which might round to another pixel. So this takes the quotient of two even draws, which has a similar
    // distribution.
    const double ratio = (3.0 + random.uniform()) / (3.0 + random.uniform());
    const auto width = static_cast<std::uint32_t>(std::sqrt(wanted * ratio) + 0.5);
    const auto height = static_cast<std::uint32_t>(std::sqrt(wanted / ratio) + 0.5);
    if (width == 0 || height == 0 || width > image.width || height > image.height) continue;
    const auto top = static_cast<std::uint32_t>(random.below(image.height - height + 1));
    const auto left = static_cast<std::uint32_t>(random.below(image.width - width + 1));
    return {top, left, height, width};
  }
  return {0, 0, image.height, image.width};
}

bool draw_mirrored(const Draw& draw, std::uint64_t record) {
  return (random_of("flip", draw, record)() & 1) != 0;
}

}  // namespace disttrain::input
