// Finds out the free space of file systems. Asking a file system may block for ever, for example if the NFS server is
// gone. So a separate thread asks. There is at most one such thread, and a scrape waits for it at most kPatience.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace disttrain::metrics {

struct DiskSize {
  double free_bytes;  // for users other than root
  double size_bytes;
};

// Returns none if the file system can't be read. May block for ever.
using DiskQuestion = std::function<std::optional<DiskSize>(const std::string& path)>;

// Asks the file system of the path. If the path doesn't exist, asks the file system of its nearest parent that exists.
std::optional<DiskSize> ask_disk(const std::string& path);

class Disks {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // `question` may still be running, on a thread that is blocked in it, after this object is destroyed.
  explicit Disks(DiskQuestion question = ask_disk);
  ~Disks();
  Disks(const Disks&) = delete;

  // Returns one answer per path, in the order of the paths. An answer is none if the file system can't be read or
  // doesn't answer in time. File systems are asked one after the other. So one that hangs holds up those after it, even
  // in later calls. Any thread may call this.
  std::vector<std::optional<DiskSize>> ask(const std::vector<std::string>& paths) const;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;  // shared with the asking thread, which may be blocked and can't be ended
};

}  // namespace disttrain::metrics
