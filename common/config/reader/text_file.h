// Reads small text files that a user names, such as configuration files.
#pragma once

#include <cstddef>
#include <string>

#include "common/result.h"

namespace disttrain::config {

// Reads the whole file. Refuses anything that isn't a regular file, because reading a pipe could block. `expected`
// names the expected kind of file for the error message: "a TOML file". Fails with kNoInput or kNoPermission if the
// file can't be read, and with kConfig if it has more than `most_bytes`.
Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& expected);

}  // namespace disttrain::config
