// Small text files that somebody names: configuration.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.h"

namespace disttrain::config {

// The whole file. Never waits: what isn't a regular file is refused, a pipe would wait for its writer. `expected` ends
// the message: "a TOML file".
// Errors: kNoInput, kNoPermission; kConfig where it has more than `most_bytes`.
Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& expected);

}  // namespace disttrain::config
