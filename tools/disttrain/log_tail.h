// What the log of a daemon ends with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace disttrain::cli {

// The last lines of a text file, at most `most`, of its last 64 KiB and not from before the byte `begin`.
std::vector<std::string> last_lines(const std::filesystem::path& file, std::size_t most, std::uintmax_t begin = 0);

// The last error among them, without its time, level and task: a line of that level (common/daemon/log/log.h), or what
// a daemon says as it ends ("chiefd: can't ..."). "": there is none.
std::string last_error(const std::filesystem::path& file, std::uintmax_t begin);

}  // namespace disttrain::cli
