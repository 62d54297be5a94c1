// Reads npy files, versions 1 to 3. NumPy saves one array in such a file. Source: NumPy Enhancement Proposal 1, "A
// Simple File Format for NumPy Arrays".
#pragma once

#include "input/array.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxNpyHeaderBytes = 64 * 1024;

// Reads the header. After that the file's next bytes are the values. Errors, kData: the file isn't an npy file, has an
// unknown version or an unknown type, is in Fortran order, holds a single value instead of an array, has a header that
// NumPy wouldn't write, or is truncated.
Result<ArrayHeader> read_npy_header(ByteSource& file);

}  // namespace disttrain::input
