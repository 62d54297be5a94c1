// Reads small text files named by a user: configuration.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.h"

namespace disttrain::config {

// The whole file. Never blocks: refuses what isn't a regular file, because a pipe would wait for its writer. `expected`
// ends the message: "a TOML file". Errors: kNoInput, kNoPermission; kConfig if the file has more than `most_bytes`.
Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& expected);

}  // namespace disttrain::config
