#include "tools/disttrain/up/runtime_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

#include "common/daemon/startup.h"

namespace disttrain::cli {

namespace fs = std::filesystem;

namespace {

constexpr char kLock[] = "lock";

// Checks that a folder exists, and that only this user can write to it. Doesn't follow a symbolic link, because another
// user could have made one in /tmp.
Status check_own(const fs::path& folder) {
  const auto refuse = [&folder](ErrorCode code, const std::string& why) {
    return fail(code, "can't use the folder " + folder.string() + ": " + why +
                          "; remove it, or set XDG_RUNTIME_DIR to a folder of your own");
  };
  const Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!fd && errno == ENOENT) return refuse(ErrorCode::kNoInput, std::strerror(errno));
  if (!fd) return refuse(ErrorCode::kNoPermission, std::strerror(errno));
  if (fstat(fd.get(), &found) != 0) return refuse(ErrorCode::kNoPermission, std::strerror(errno));
  if (found.st_uid != geteuid())
    return refuse(ErrorCode::kNoPermission,
                  "it belongs to user " + std::to_string(found.st_uid) + ", expected " + std::to_string(geteuid()));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse(ErrorCode::kNoPermission, "others can write into it");
  return {};
}

Status make_private(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::kNoPermission, "can't make the folder " + folder.string() + ": " + std::strerror(errno) +
                                              "; set XDG_RUNTIME_DIR to a folder of your own");
  return check_own(folder);
}

// Tries to lock a folder. Returns an empty descriptor if a running `up` holds the lock, and none if the lock file can't
// be opened (see errno).
std::optional<Descriptor> try_lock(const fs::path& folder) {
  Descriptor fd(open((folder / kLock).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd) return std::nullopt;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return Descriptor();
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
  // Makes and locks the folder under a hidden name, then renames it. If another process saw the folder before it is
  // locked, that process would take this `up` for dead and remove the folder.
  const fs::path hidden = root / ("." + name + "-" + std::to_string(getpid()));
  const fs::path shown = root / name;
  std::error_code error;
  fs::remove_all(hidden, error);
  if (Status made = make_private(hidden); !made) return tl::unexpected<Error>(std::move(made.error()));
  const auto refuse = [&](const std::string& why) {
    fs::remove_all(hidden, error);
    return fail(ErrorCode::kTemporary, "can't make the folder " + shown.string() + ": " + why);
  };
  std::optional<Descriptor> lock = try_lock(hidden);
  if (!lock) return refuse(std::string("its lock: ") + std::strerror(errno));
  if (!(std::ofstream(hidden / "cluster.toml") << cluster_toml).flush())
    return refuse(std::string("its cluster.toml: ") + std::strerror(errno));
  (void)live_clusters();  // removes the folder of a dead `up` with the same name
  fs::rename(hidden, shown, error);
  if (error) return refuse(error.message());
  return Registration(shown, std::move(*lock));
}

Registration::~Registration() {
  std::error_code ignored;
  if (lock_) fs::remove_all(folder_, ignored);
}

Result<std::vector<fs::path>> live_clusters() {
  const fs::path root = runtime_root();
  if (Status own = check_own(root); !own) {
    if (own.error().code == ErrorCode::kNoInput) return std::vector<fs::path>();
    return tl::unexpected<Error>(std::move(own.error()));
  }
  std::vector<fs::path> live;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    if (entry.path().filename().string().front() == '.' || !check_own(entry.path())) continue;
    const std::optional<Descriptor> lock = try_lock(entry.path());
    if (lock && *lock)
      fs::remove_all(entry.path(), error);
    else if (lock && fs::exists(entry.path() / "cluster.toml", error))
      live.push_back(entry.path() / "cluster.toml");
  }
  std::sort(live.begin(), live.end());
  return live;
}

Result<std::string> find_cluster(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* variable = std::getenv("DISTTRAIN_CLUSTER"); variable != nullptr && *variable != '\0')
    return std::string(variable);
  const Result<std::vector<fs::path>> live = live_clusters();
  if (live && live->size() == 1) return live->front().string();
  if (live && live->size() > 1) {
    std::string message = "several clusters of `disttrain up` are running; choose one with --cluster:";
    for (const fs::path& path : *live) message += "\n  --cluster " + path.string();
    return fail(ErrorCode::kUsage, message);
  }
  std::error_code error;
  const bool has_default = fs::exists(daemon::kDefaultClusterFile, error);
  if (!live && !has_default) return tl::unexpected<Error>(live.error());
  if (!live) std::cerr << "disttrain: " << live.error().message << '\n';
  if (has_default) return std::string(daemon::kDefaultClusterFile);
  return fail(ErrorCode::kNoInput,
              std::string("there is no cluster: no --cluster FILE, no $DISTTRAIN_CLUSTER, no running ") +
                  "`disttrain up` of this user, and no " + daemon::kDefaultClusterFile +
                  "; start one with: disttrain up --job JOB.toml");
}

}  // namespace disttrain::cli
