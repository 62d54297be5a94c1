// idx, the format of MNIST: two zero bytes, a type, the number of dimensions, each dimension as 32 bits big-endian,
// then the values, big-endian. Source: yann.lecun.com/exdb/mnist, "The IDX file format".
#pragma once

#include <string>
#include <vector>

#include "workerd/input/array.h"

namespace disttrain::input {

// Reads the header; the values follow. Errors, kData: not idx, an unknown type, truncated.
Result<ArrayHeader> read_idx_header(FileReader& file);

// Where the labels of an image file are, by MNIST's convention: in the file's name "images" becomes "labels" and "idx3"
// (any digit) "idx1". Several candidates: first compressed or plain like the image file, then the other. Empty if the
// name lacks "images".
std::vector<std::string> idx_label_candidates(const std::string& image_path);

}  // namespace disttrain::input
