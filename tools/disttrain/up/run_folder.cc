#include "tools/disttrain/up/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "transport/tcp/socket.h"

namespace disttrain::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "disttrain-";
constexpr std::string_view kRandom = "XXXXXX";
constexpr char kFolderLock[] = "lock";
constexpr char kFolderLockBefore[] = ".lock";  // before it is locked

// "disttrain-a1B2c3".
bool is_name_of_run_folder(const std::string& name) {
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandom.size() &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char character) { return std::isalnum(character) != 0; });
}

// True if the folder belongs to this user, and the process that made it was killed. A folder without a lock is kept, or
// isn't ours.
bool is_left_behind(const fs::path& folder) {
  const Descriptor open_folder(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!open_folder || ::fstat(open_folder.get(), &found) != 0 || found.st_uid != ::geteuid()) return false;
  if ((found.st_mode & 077) != 0) return false;
  const Descriptor lock(::openat(open_folder.get(), kFolderLock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_those_left_behind(const fs::path& base) {
  std::error_code error;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (is_name_of_run_folder(entry->path().filename().string()) && is_left_behind(entry->path()))
      fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<RunFolder> RunFolder::make() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  std::string pattern = (base / (std::string(kPrefix) + std::string(kRandom))).string();
  const auto refuse = [&pattern] {
    return fail(ErrorCode::kNoPermission, "can't create a run folder " + pattern + ": " +
                                              transport::system_words(errno) + "; set TMPDIR to a folder of your own");
  };
  if (!error) remove_those_left_behind(base);
  if (error || ::mkdtemp(pattern.data()) == nullptr) return refuse();
  const fs::path path = pattern;
  // The lock gets its name when it is locked, so that no other process takes this one for dead.
  Descriptor lock(::open((path / kFolderLockBefore).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::rename((path / kFolderLockBefore).c_str(), (path / kFolderLock).c_str()) != 0) {
    const auto refused = refuse();
    fs::remove_all(path, error);
    return refused;
  }
  return RunFolder(path, std::move(lock));
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (lock_) fs::remove_all(path_, ignored);
}

void RunFolder::keep() {
  std::error_code ignored;
  fs::remove(path_ / kFolderLock, ignored);
  lock_ = Descriptor();
}

}  // namespace disttrain::cli
