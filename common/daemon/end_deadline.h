// The last wait of a process has a deadline too: threads that read a file of a server which doesn't answer, or compute
// for minutes, can't be told to end.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/daemon/log/log.h"
#include "common/time.h"

namespace disttrain::daemon {

// From its construction on the process has `patience` to end by itself: to destroy this. Then it ends with `exit_code`
// at once, as if it were killed: what isn't on the disk yet is lost, and nothing else. `log` outlives it.
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
