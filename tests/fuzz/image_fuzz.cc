// JPEG and PNG images.
#include "input/image.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ImageDecoder decoder;
  const auto file = bytes_of(data, size);
  const auto shape = decoder.shape_of(file);
  if (!shape) return 0;
  DISTTRAIN_CHECK(shape->bytes() > 0 && shape->bytes() <= 3 * kMaxImagePixels);
  // A header of a few bytes may promise a large image, which takes long to decode.
  if (std::uint64_t{shape->height} * shape->width > 1 << 16) return 0;
  for (const ImageShape wanted : {*shape, ImageShape{5, 9, 3}, ImageShape{40, 30, 1}}) {
    std::vector<std::uint8_t> pixels(wanted.bytes());
    static_cast<void>(decoder.decode(file, wanted, pixels));
  }
  return 0;
}
