// Reads idx files, the format of the MNIST data set. An idx file begins with two zero bytes, a byte for the type and a
// byte for the number of dimensions. Then come the dimensions as 32-bit numbers and the values, all big-endian. Source:
// yann.lecun.com/exdb/mnist, "The IDX file format".
#pragma once

#include <string>
#include <vector>

#include "input/array.h"

namespace disttrain::input {

// Reads the header. After that the file's next bytes are the values. Errors, kData: the file isn't an idx file, has an
// unknown type, or is truncated.
Result<ArrayHeader> read_idx_header(ByteSource& file);

// Returns the paths at which the labels of an image file may be, by MNIST's convention: in the file's name "images"
// becomes "labels", and "idx3" (or another digit) becomes "idx1". Returns three paths: with ".gz", with ".zst" and
// with neither. The first of them ends like the image file's path. Returns nothing if the name doesn't contain
// "images".
std::vector<std::string> idx_label_candidates(const std::string& image_path);

}  // namespace disttrain::input
