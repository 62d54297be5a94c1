#include "common/metrics/disks.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace disttrain::metrics {

namespace {

struct Asked {
  std::vector<std::optional<DiskSize>> answers;
  bool is_done = false;
};

}  // namespace

struct Disks::Shared {
  explicit Shared(DiskQuestion q) : question(std::move(q)) {}

  void ask(const std::vector<std::string>& paths, Asked& asked);

  const DiskQuestion question;
  std::mutex mutex;  // guards is_asking and the members of Asked
  std::condition_variable changed;
  bool is_asking = false;
};

std::optional<DiskSize> ask_disk(const std::string& folder) {
  std::filesystem::path path = folder;
  struct statvfs found {};
  while (::statvfs(path.empty() ? "." : path.c_str(), &found) != 0) {
    if (errno != ENOENT || !path.has_relative_path()) return std::nullopt;
    path = path.parent_path();
  }
  const auto bytes = [&found](fsblkcnt_t blocks) {
    return static_cast<double>(blocks) * static_cast<double>(found.f_frsize);
  };
  return DiskSize{bytes(found.f_bavail), bytes(found.f_blocks)};
}

Disks::Disks(DiskQuestion question) : shared_(std::make_shared<Shared>(std::move(question))) {}
Disks::~Disks() = default;

std::vector<std::optional<DiskSize>> Disks::ask(const std::vector<std::string>& paths) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto asked = std::make_shared<Asked>();
  asked->answers.resize(paths.size());
  if (paths.empty()) return asked->answers;
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  if (!shared.changed.wait_until(lock, end, [&shared] { return !shared.is_asking; })) return asked->answers;
  try {
    std::thread([all = shared_, paths, asked] { all->ask(paths, *asked); }).detach();
  } catch (const std::system_error&) {
    return asked->answers;  // without a thread the answer stays unknown
  }
  shared.is_asking = true;
  shared.changed.wait_until(lock, end, [&asked] { return asked->is_done; });
  return asked->answers;
}

void Disks::Shared::ask(const std::vector<std::string>& paths, Asked& asked) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::optional<DiskSize> answer = question(paths[i]);
    const std::lock_guard lock(mutex);
    asked.answers[i] = answer;
  }
  const std::lock_guard lock(mutex);
  asked.is_done = true;
  is_asking = false;
  changed.notify_all();
}

}  // namespace disttrain::metrics
