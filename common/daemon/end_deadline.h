// A deadline for the end of a process: a thread that reads from a dead file server or computes for minutes can't be
// told to end.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/daemon/log/log.h"
#include "common/time.h"

namespace disttrain::daemon {

// From its construction the process has `patience` to end, that is, to destroy this object. Then the process ends at
// once with `exit_code`, as if killed: only data that isn't on the disk yet is lost. `log` outlives it.
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

// Well within the 90 s that systemd waits.
inline constexpr Duration kEndPatience = std::chrono::seconds(10);

}  // namespace disttrain::daemon
