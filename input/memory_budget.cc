// Small data sets are read into memory, because a step of a small model takes 0.2 ms. The limit, data.memory, is by
// default a quarter of the free memory: the parameters need some, and several workers may share a host.
#include "input/memory_budget.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace disttrain::input {

namespace {

// A typical ratio of compressed numbers and text.
constexpr std::uint64_t kPackedRatio = 4;

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (file >> word)
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  return std::uint64_t{1} << 30;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

// The smallest limit of a control group and of those above it. `file` is the name of the file with a group's limit.
std::uint64_t limit_of(const std::string& root, std::string group, const std::string& file) {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  for (;;) {
    limit = std::min(limit, number_in(root + group + "/" + file).value_or(limit));
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return limit;
    group.resize(slash);
  }
}

// The limit of the process's control groups, of version 2 and of version 1.
std::uint64_t group_limit() {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::"))
      limit = std::min(limit, limit_of("/sys/fs/cgroup", line.substr(3), "memory.max"));
    else if (const std::size_t at = line.find(":memory:/"); at != std::string::npos)
      limit = std::min(limit, limit_of("/sys/fs/cgroup/memory", line.substr(at + 8), "memory.limit_in_bytes"));
  }
  return limit;
}

bool is_packed(const std::string& path) {
  return path.ends_with(".gz") || path.ends_with(".zst");
}

std::uint64_t bytes_of(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
}

}  // namespace

std::uint64_t memory_budget(std::uint64_t configured) {
  return configured != 0 ? configured : std::min(available_memory(), group_limit()) / 4;
}

std::uint64_t bytes_of(const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += bytes_of(path);
  return bytes;
}

std::uint64_t estimated_bytes(const std::vector<std::string>& paths) {
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += bytes_of(path) * (is_packed(path) ? kPackedRatio : 1);
  return bytes;
}

}  // namespace disttrain::input
