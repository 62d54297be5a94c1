// Reads the end of a daemon's log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace disttrain::cli {

// Returns the last lines of a text file, at most `most`. Reads at most the last 64 KiB, and nothing before byte
// `begin`.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most, std::uintmax_t begin = 0);

// Returns the last error in the last 100 lines, without its time, level and task. An error is a line of level error
// (common/daemon/log/log.h), or the line that a daemon prints when it can't go on ("chiefd: can't ..."). "": there is
// none.
std::string last_error(const std::filesystem::path& file, std::uintmax_t begin);

}  // namespace disttrain::cli
