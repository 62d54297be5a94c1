#include "common/daemon/end_deadline.h"

#include <cstdlib>
#include <string>

#include "common/daemon/threads.h"

namespace disttrain::daemon {

EndDeadline::EndDeadline(Log& log, Duration patience, int exit_code)
    : thread_([this, &log, patience, exit_code] {
        name_thread("end");
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, patience, [this] { return has_ended_; })) return;
        log.warn("a thread hasn't ended within " + std::to_string(static_cast<long>(to_seconds(patience))) +
                 " s, it reads or computes: ends without it");
        std::_Exit(exit_code);
      }) {}

EndDeadline::~EndDeadline() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace disttrain::daemon
