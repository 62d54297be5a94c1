#include "tools/disttrain/runtime_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/daemon/startup.h"

namespace disttrain::cli {

namespace fs = std::filesystem;

namespace {

constexpr char kLock[] = "lock";

// Made for this user alone. In /tmp somebody else could have made it before us: then it isn't used.
Status make_private(const fs::path& folder) {
  const auto refuse = [&folder](const std::string& why) {
    return fail(ErrorCode::kNoPermission, "can't use the folder " + folder.string() + ": " + why +
                                              "; set XDG_RUNTIME_DIR to a folder of your own");
  };
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return refuse(std::strerror(errno));
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) return refuse(std::strerror(errno));
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid()) return refuse("it belongs to somebody else");
  return {};
}

// The lock of a folder, not waited for. Empty: someone lives there.
transport::Fd try_lock(const fs::path& folder) {
  transport::Fd fd(open((folder / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return fd;
}

}  // namespace

fs::path runtime_root() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code ignored;
  if (runtime != nullptr && *runtime != '\0' && fs::is_directory(runtime, ignored))
    return fs::path(runtime) / "disttrain";
  return "/tmp/disttrain-" + std::to_string(geteuid());
}

Result<Registration> Registration::make(const std::string& name, const std::string& cluster_toml) {
  const fs::path root = runtime_root();
  if (Status made = make_private(root); !made) return tl::unexpected<Error>(std::move(made.error()));
  // Made under a hidden name and locked before it is shown: whoever looks never sees it unlocked.
  const fs::path hidden = root / ("." + name + "-" + std::to_string(getpid()));
  const fs::path shown = root / name;
  std::error_code error;
  fs::remove_all(hidden, error);
  if (Status made = make_private(hidden); !made) return tl::unexpected<Error>(std::move(made.error()));
  transport::Fd lock = try_lock(hidden);
  std::ofstream(hidden / "cluster.toml") << cluster_toml;
  live_clusters();  // removes what a dead one has left under this name
  fs::rename(hidden, shown, error);
  if (error || !lock) {
    fs::remove_all(hidden);
    return fail(ErrorCode::kTemporary, "can't make the folder " + shown.string() + ": " + error.message());
  }
  return Registration(shown, std::move(lock));
}

Registration::~Registration() {
  std::error_code ignored;
  if (lock_) fs::remove_all(folder_, ignored);
}

std::vector<fs::path> live_clusters() {
  std::vector<fs::path> live;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runtime_root(), error)) {
    if (entry.path().filename().string().front() == '.' || !entry.is_directory(error)) continue;
    if (const transport::Fd lock = try_lock(entry.path()))
      fs::remove_all(entry.path(), error);
    else if (fs::exists(entry.path() / "cluster.toml", error))
      live.push_back(entry.path() / "cluster.toml");
  }
  std::sort(live.begin(), live.end());
  return live;
}

Result<std::string> find_cluster(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* variable = std::getenv("DISTTRAIN_CLUSTER"); variable != nullptr && *variable != '\0')
    return std::string(variable);
  const std::vector<fs::path> live = live_clusters();
  if (live.size() == 1) return live.front().string();
  if (live.size() > 1) {
    std::string message = "several clusters of `disttrain up` are live; say which with --cluster:";
    for (const fs::path& path : live) message += "\n  --cluster " + path.string();
    return fail(ErrorCode::kUsage, message);
  }
  std::error_code error;
  if (fs::exists(daemon::kDefaultClusterFile, error)) return std::string(daemon::kDefaultClusterFile);
  return fail(ErrorCode::kNoInput,
              std::string("there is no cluster: no --cluster FILE, no $DISTTRAIN_CLUSTER, no live ") +
                  "`disttrain up` of this user, no " + daemon::kDefaultClusterFile +
                  "; start one with: disttrain up --job JOB.toml");
}

}  // namespace disttrain::cli
