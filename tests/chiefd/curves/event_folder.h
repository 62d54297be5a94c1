// A folder for event files, a new one for each test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace disttrain::chiefd {

constexpr std::int64_t kWall = 1'700'000'000'500'000'000;

inline std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

class EventFolder {
 public:
  EventFolder() {
    std::string path = testing::TempDir() + "disttrain-events-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~EventFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

  // The contents of all files of the folder that is named `in`, in the order of the files' names.
  std::string bytes(const std::string& in) const {
    std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(path_ / in),
                                             std::filesystem::directory_iterator());
    std::sort(files.begin(), files.end());
    std::string bytes;
    for (const std::filesystem::path& file : files) {
      std::ifstream stream(file, std::ios::binary);
      bytes += std::string(std::istreambuf_iterator<char>(stream), {});
    }
    return bytes;
  }

  // Returns true if this process has a file of the folder open.
  bool is_held() const {
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(file, gone).string().starts_with(path_.string())) return true;
    }
    return false;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace disttrain::chiefd
