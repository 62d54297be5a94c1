// Random changes of training images. They are a function of the job's seed, the epoch and the record, so they are the
// same whichever worker trains on the record, and after a restart.
#pragma once

#include <cstdint>

#include "input/dataset.h"
#include "input/image.h"

namespace disttrain::input {

// A part of an image, in pixels. It lies within the image and isn't empty.
struct ImagePart {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

// A part of an image of that size. Its area is between 8 % and 100 % of the image's, and its width between 3/4 and 4/3
// of its height, as torchvision's RandomResizedCrop draws them. If ten draws don't fit into the image, it is the whole
// image.
ImagePart draw_part(const ImageShape& image, const Draw& draw, std::uint64_t record);

// Whether the image is mirrored; half of all images are.
bool draw_mirrored(const Draw& draw, std::uint64_t record);

}  // namespace disttrain::input
