// The files that a glob in a folder matches.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "workerd/input/dataset.h"

namespace disttrain::input {

// Paths that match `pattern` (as in a shell, also across subfolders) in the source's folder, sorted by bytes. `key` is
// the configuration key that holds the pattern, for messages. Errors: kNoInput (no such folder, nothing matches),
// kNoPermission, kConfig (a file is there both plain and as .gz: its records would count twice).
Result<std::vector<std::string>> find_files(const Source& source, const std::string& pattern, const std::string& key);

}  // namespace disttrain::input
