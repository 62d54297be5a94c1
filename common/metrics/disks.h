// Free space of file systems. A file system that hangs (NFS without its server) blocks only a thread of its own: there
// is at most one such thread, and a scrape waits at most kPatience for it.
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

// None: the file system can't be read. May hang.
using DiskQuestion = std::function<std::optional<DiskSize>(const std::string& path)>;

// The file system of the path, or of its nearest existing parent.
std::optional<DiskSize> ask_disk(const std::string& path);

class Disks {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // The question may still run after the end of Disks, on the thread that hangs in it.
  explicit Disks(DiskQuestion question = ask_disk);
  ~Disks();
  Disks(const Disks&) = delete;

  // Any thread. One answer per path, in their order. None: it can't be read, or neither it nor one asked before it has
  // answered in time.
  std::vector<std::optional<DiskSize>> ask(const std::vector<std::string>& paths) const;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;  // shared with the asking thread, which nobody can end
};

}  // namespace disttrain::metrics
