// Counts of things for people, in log lines, messages and tables.
#pragma once

#include <cstdint>
#include <string>

namespace disttrain {

// The noun with an s, except for the count 1.
inline std::string noun_for(std::uint64_t count, const std::string& noun) {
  return count == 1 ? noun : noun + "s";
}

// "1 record", "0 records".
inline std::string counted(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun_for(count, noun);
}

}  // namespace disttrain
