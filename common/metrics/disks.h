// How full file systems are. One that hangs (NFS without its server) hangs a thread of its own and nobody else: there
// is one such thread at most, and a scrape waits kPatience for it at most.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace disttrain::metrics {

struct DiskSize {
  double free_bytes;  // for those who aren't root
  double size_bytes;
};

// None: it may not be looked at. May hang.
using DiskQuestion = std::function<std::optional<DiskSize>(const std::string& path)>;

// The file system that the path, or its nearest parent that exists, lies on.
std::optional<DiskSize> ask_disk(const std::string& path);

class Disks {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // The question may still be asked after the end of Disks, by the thread that hangs in it.
  explicit Disks(DiskQuestion question = ask_disk);
  ~Disks();
  Disks(const Disks&) = delete;

  // Any thread. As many as there are paths, in their order. None: it may not be looked at, it hasn't answered in time,
  // or another one, which is asked first, hasn't.
  std::vector<std::optional<DiskSize>> ask(const std::vector<std::string>& paths) const;

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;  // with the thread that asks, which nobody can end
};

}  // namespace disttrain::metrics
