// What the step thread is doing, for the heartbeats of the main loop, and what it has counted, for its metrics.
#pragma once

#include <mutex>

#include "common/ids.h"
#include "workerd/core/worker_core.h"
#include "workerd/worker_figures.h"

namespace disttrain::workerd {

struct BoardEntry {
  JobId job;  // 0 = idle
  Generation generation;
  Progress progress;
};

// The newest of its values. Any thread.
template <typename Entry>
class Board {
 public:
  void write(const Entry& entry) {
    const std::lock_guard lock(mutex_);
    entry_ = entry;
  }
  Entry read() const {
    const std::lock_guard lock(mutex_);
    return entry_;
  }

 private:
  mutable std::mutex mutex_;  // guards entry_; nothing else is locked under it
  Entry entry_;
};

using ProgressBoard = Board<BoardEntry>;
using FiguresBoard = Board<WorkerFigures>;

}  // namespace disttrain::workerd
