// Reads the end of a daemon's log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace disttrain::cli {

// The last lines of a text file: at most `most`, only from its last 64 KiB and from byte `begin` on.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most, std::uintmax_t begin = 0);

// The last error in the last 100 lines, without its time, level and task. An error is a line of that level
// (common/daemon/log/log.h) or what a daemon prints as it ends ("chiefd: can't ..."). "": there is none.
std::string last_error(const std::filesystem::path& file, std::uintmax_t begin);

}  // namespace disttrain::cli
