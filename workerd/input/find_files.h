// Finds the files in a folder that match a pattern.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Returns the paths in the source's folder that match `pattern`, in sorted order. The pattern is as in a shell and may
// contain subfolders; "?" stands for a character of UTF-8. `key` is the configuration key of the pattern, for error
// texts. Errors: kNoInput (the folder doesn't exist, or no file matches), kNoPermission, kConfig (the pattern matches x
// and x.gz or x.zst, so records would count twice).
Result<std::vector<std::string>> find_files(const Source& source, const std::string& pattern, const std::string& key);

}  // namespace disttrain::input
