// A deadline for the end of a process. It is needed because a thread that reads from a dead file server, or computes
// for minutes, can't be interrupted.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/daemon/log/log.h"
#include "common/time.h"

namespace disttrain::daemon {

// Construct this object when the process begins to end, and destroy it when all threads have ended. If it isn't
// destroyed within `patience`, it logs a warning and ends the process at once with `exit_code`. As after a kill, only
// data that isn't on the disk yet is lost. `log` must outlive this object.
class EndDeadline {
 public:
  EndDeadline(Log& log, Duration patience, int exit_code);
  ~EndDeadline();
  EndDeadline(const EndDeadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

// much less than the 90 s after which systemd kills a process that should end
inline constexpr Duration kEndPatience = std::chrono::seconds(10);

}  // namespace disttrain::daemon
