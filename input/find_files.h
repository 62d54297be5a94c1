// Finds the files in a folder that match a pattern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "input/dataset.h"

namespace disttrain::input {

// The most names that find_files() looks at, in all folders of a pattern together. The largest data sets of images have
// 14 million files. A pattern such as "*/../*/../*" finds the same files again and again.
inline constexpr std::uint64_t kMaxNamesOfPattern = std::uint64_t{1} << 24;

// Returns the paths in the source's folder that match `pattern`, in sorted order. The pattern is as in a shell and may
// contain subfolders; "?" stands for a character of UTF-8. `key` is the configuration key of the pattern, for error
// texts. Errors: kNoInput (the folder doesn't exist, or no file matches), kNoPermission, kConfig (the pattern matches x
// and x.gz or x.zst, so records would count twice, or its folders have more than `max_names` names), kTemporary
// (source.is_cancelled() has returned true).
Result<std::vector<std::string>> find_files(const Source& source, const std::string& pattern, const std::string& key,
                                            std::uint64_t max_names = kMaxNamesOfPattern);

}  // namespace disttrain::input
