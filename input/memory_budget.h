// How much memory a data set may take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace disttrain::input {

// `configured` is data.memory in bytes. If it is 0 ("auto"), returns a quarter of the memory that is available to this
// process: by /proc/meminfo, and by the limit of its control group.
std::uint64_t memory_budget(std::uint64_t configured);

// The sum of the sizes of the files. Files that can't be read count as 0.
std::uint64_t bytes_of(const std::vector<std::string>& paths);

// The most memory that the decoded records of the files may take, estimated from the sizes of the files.
std::uint64_t estimated_bytes(const std::vector<std::string>& paths);

}  // namespace disttrain::input
