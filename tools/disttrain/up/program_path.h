// Finds the programs of the daemons.
#pragma once

#include <filesystem>
#include <string>

namespace disttrain::cli {

// The path of a daemon's program, such as "workerd". It is in the folder of this program or, if this program is
// installed in /usr/bin, in /usr/sbin. The file may be missing there.
inline std::filesystem::path program_path(const std::string& name) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return std::filesystem::exists(folder / name, error) ? folder / name : folder.parent_path() / "sbin" / name;
}

}  // namespace disttrain::cli
