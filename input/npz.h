// Reads npz files: zip files of npy files, as numpy.savez and numpy.savez_compressed write them. libarchive reads the
// zip file.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/array.h"
#include "input/decompressor.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxNpzMembers = 10'000;

struct NamedArray {
  std::string name;  // "x" for the member x.npy
  Array array;
};

// Reads the arrays of these names, or all if `names` is empty. Members whose name doesn't end in .npy are skipped. The
// arrays have the order of the file. Errors: those of FileReader::open(). kData, with file and member: an array isn't
// there, is there twice, or isn't a valid npy file, the zip file is damaged or truncated or has more than
// kMaxNpzMembers, or the arrays have more bytes in all than most_content() allows a file of this size. kTemporary:
// cancelled.
Result<std::vector<NamedArray>> read_npz(const std::string& path, const std::vector<std::string>& names,
                                         const std::function<bool()>& is_cancelled = {},
                                         std::uint64_t max_expansion = kMaxExpansion);

// The same for the content of a file, which is in memory. `path` is for error texts.
Result<std::vector<NamedArray>> read_npz_from(std::span<const std::byte> content, const std::string& path,
                                              const std::vector<std::string>& names);

}  // namespace disttrain::input
