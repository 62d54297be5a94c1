// ProgressBoard: what the step thread is doing, for the heartbeats of the main loop.
#pragma once

#include <mutex>

#include "common/ids.h"
#include "workerd/core/worker_core.h"

namespace disttrain::workerd {

struct BoardEntry {
  JobId job;  // 0 = idle
  Generation generation;
  Progress progress;
};

// Any thread.
class ProgressBoard {
 public:
  void write(const BoardEntry& entry) {
    const std::lock_guard lock(mutex_);
    entry_ = entry;
  }
  BoardEntry read() const {
    const std::lock_guard lock(mutex_);
    return entry_;
  }

 private:
  mutable std::mutex mutex_;  // guards entry_; nothing else is locked under it
  BoardEntry entry_;
};

}  // namespace disttrain::workerd
