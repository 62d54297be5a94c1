// Decodes JPEG and PNG images into bytes: height x width x channels, row by row. The content says which of the two an
// image is, and not its name. libjpeg-turbo and libpng do the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::input {

struct ImageShape {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  // 1: gray, 3: red, green, blue

  std::size_t bytes() const { return std::size_t{height} * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

// Larger images are refused before memory is allocated for them. An image may take 10 bytes of memory for each pixel.
inline constexpr std::uint32_t kMaxImageSide = 1 << 16;
inline constexpr std::uint64_t kMaxImagePixels = 1 << 26;

// At most one thread at a time may use a decoder. It keeps the memory that the largest image needed.
//
// Errors, kData, say what is wrong with the image, but not which one it is; the caller knows its place. They are: the
// bytes are neither JPEG nor PNG, the image is too large or damaged or truncated, or its colours are CMYK. Two things
// aren't errors: stray bytes between the parts of a JPEG's header or before its end marker, because many files on the
// Web have some; and a PNG that breaks off behind its last pixel.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Reads only the header. The channels are those that the file has, without transparency.
  Result<ImageShape> shape_of(std::span<const std::byte> file);

  // Decodes the image into `out`, which has wanted.bytes(). An image of another size is resized (see image_resize.h).
  // A JPEG that is at least twice as large as wanted is decoded at a half, a quarter or an eighth of its size, which
  // takes less time and blurs less than resizing alone. Colours become gray as in ITU-R BT.601. Transparency is
  // dropped, and so is the orientation that a camera noted. After an error `out` has any content.
  Status decode(std::span<const std::byte> file, const ImageShape& wanted, std::span<std::uint8_t> out);

 private:
  class Jpeg;
  struct Header;

  Result<Header> read_header(std::span<const std::byte> file);
  Status decode_jpeg(std::span<const std::byte> file, const Header& header, const ImageShape& wanted,
                     std::span<std::uint8_t> out);
  static Status decode_png(std::span<const std::byte> file, const ImageShape& wanted,
                           std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> out);

  const std::unique_ptr<Jpeg> jpeg_;
  std::vector<std::uint8_t> decoded_;           // the image before it is resized
  std::vector<std::uint8_t> scratch_;           // a PNG before its transparency is dropped
  std::vector<std::byte> without_stray_bytes_;  // a JPEG whose header had some
};

}  // namespace disttrain::input
