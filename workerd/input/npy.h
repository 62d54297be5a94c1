// npy, NumPy's file of one array, versions 1 to 3. Source: NumPy Enhancement Proposal 1, "A Simple File Format for
// NumPy Arrays".
#pragma once

#include "workerd/input/array.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxNpyHeaderBytes = 64 * 1024;

// Reads the header; the values follow. Errors, kData: not npy, an unknown version or type, Fortran order, a header
// that isn't the dictionary that NumPy writes, truncated.
Result<ArrayHeader> read_npy_header(FileReader& file);

}  // namespace disttrain::input
