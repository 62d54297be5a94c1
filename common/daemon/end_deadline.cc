// Without this limit, systemd would kill the daemon after 90 s and call it failed. An end with running threads is as
// safe as a crash, because the files on disk are complete at any moment.
#include "common/daemon/end_deadline.h"

#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "common/daemon/threads.h"
#include "common/format_duration.h"

namespace disttrain::daemon {

namespace {

constexpr Duration kLinePatience = std::chrono::seconds(1);

}  // namespace

EndDeadline::EndDeadline(Log& log, Duration patience, int exit_code)
    : thread_([this, &log, patience, exit_code] {
        name_thread("end");
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, patience, [this] { return has_ended_; })) return;
        lock.unlock();
        const std::string line = "a thread hasn't ended within " + format_duration(patience) +
                                 ", because it still reads or computes: ending the process without it";
        // Log on another thread, because writing the log may be what blocks.
        auto said = std::make_shared<std::promise<void>>();
        std::thread([&log, line, said] {
          log.warn(line);
          said->set_value();
        }).detach();
        said->get_future().wait_for(kLinePatience);
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
