// The folder of a cluster that the command line starts on this host: its cluster file and its logs.
#pragma once

#include <filesystem>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::cli {

// While this object exists, it holds a lock on the file "lock" in the folder. If the process is killed, the lock is
// free, and the next RunFolder::make() of this user removes the folder.
class RunFolder {
 public:
  // Makes a new folder in $TMPDIR or /tmp, for this user only. First removes the folders of this user's processes that
  // were killed.
  static Result<RunFolder> make();
  // Removes the folder, unless keep() was called.
  ~RunFolder();
  RunFolder(RunFolder&&) = default;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // From now on the folder stays until somebody removes it by hand.
  void keep();

 private:
  RunFolder(std::filesystem::path path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Descriptor lock_;  // none: the folder is kept, or belongs to another object
};

}  // namespace disttrain::cli
