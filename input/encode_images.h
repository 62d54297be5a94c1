// Makes the pixels for a model from the bytes of an image file, as a column of the kind "image" says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/dataset.h"
#include "input/image.h"

namespace disttrain::input {

// The size of a model's images: column.shape is {channels, height, width}.
ImageShape image_shape(const ColumnSection& column);

// Use it from one thread at a time.
class ImageEncoder {
 public:
  // Decodes a JPEG or PNG file to the column's size, and in training changes it as the column's crop and flip say.
  // Writes the channels one after the other: all red pixels first. `out` has image_shape(column).bytes(). Errors,
  // kData, don't name the record: those of ImageDecoder.
  Status encode(const ColumnSection& column, std::span<const std::byte> file, const Draw& draw, std::uint64_t record,
                std::span<std::uint8_t> out);

 private:
  Status decode_part(const ImageShape& wanted, std::span<const std::byte> file, const Draw& draw, std::uint64_t record);

  ImageDecoder decoder_;
  std::vector<std::uint8_t> whole_;
  std::vector<std::uint8_t> part_;
  std::vector<std::uint8_t> pixels_;  // of the wanted size, row by row
};

}  // namespace disttrain::input
