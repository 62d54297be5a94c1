#include "input/encode_images.h"

#include <cstring>

#include "common/check.h"
#include "input/augment.h"
#include "input/image_resize.h"

namespace disttrain::input {

ImageShape image_shape(const ColumnSection& column) {
  DISTTRAIN_CHECK_EQ(column.shape.size(), std::size_t{3});
  return {.height = column.shape[1], .width = column.shape[2], .channels = column.shape[0]};
}

Status ImageEncoder::encode(const ColumnSection& column, std::span<const std::byte> file, const Draw& draw,
                            std::uint64_t record, std::span<std::uint8_t> out) {
  const ImageShape wanted = image_shape(column);
  DISTTRAIN_CHECK_EQ(out.size(), wanted.bytes());
  pixels_.resize(wanted.bytes());
  const bool crops = column.crop && draw.is_training;
  if (Status ok = crops ? decode_part(wanted, file, draw, record) : decoder_.decode(file, wanted, pixels_); !ok)
    return ok;
  const bool mirrors = column.flip && draw.is_training && draw_mirrored(draw, record);
  const std::size_t plane = std::size_t{wanted.height} * wanted.width;
  for (std::size_t y = 0; y < wanted.height; ++y)
    for (std::size_t x = 0; x < wanted.width; ++x) {
      const std::size_t to = y * wanted.width + (mirrors ? wanted.width - 1 - x : x);
      const std::uint8_t* const from = pixels_.data() + (y * wanted.width + x) * wanted.channels;
      for (std::size_t c = 0; c < wanted.channels; ++c) out[c * plane + to] = from[c];
    }
  return {};
}

// Decodes the whole image, cuts a random part out and resizes it.
Status ImageEncoder::decode_part(const ImageShape& wanted, std::span<const std::byte> file, const Draw& draw,
                                 std::uint64_t record) {
  const Result<ImageShape> found = decoder_.shape_of(file);
  if (!found) return tl::unexpected(found.error());
  const ImageShape whole{found->height, found->width, wanted.channels};
  whole_.resize(whole.bytes());
  if (Status ok = decoder_.decode(file, whole, whole_); !ok) return ok;
  const ImagePart part = draw_part(whole, draw, record);
  const ImageShape cut{part.height, part.width, wanted.channels};
  part_.resize(cut.bytes());
  const std::size_t row = std::size_t{part.width} * wanted.channels;
  for (std::size_t y = 0; y < part.height; ++y)
    std::memcpy(part_.data() + y * row,
                whole_.data() + ((part.top + y) * whole.width + part.left) * std::size_t{wanted.channels}, row);
  resize_image(cut, part_, wanted, pixels_);
  return {};
}

}  // namespace disttrain::input
