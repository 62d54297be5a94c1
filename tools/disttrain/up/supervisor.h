// Restarts daemons of `up` that end, as systemd does on the hosts of a real cluster.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "tools/disttrain/up/child.h"
#include "tools/disttrain/up/restart_policy.h"

namespace disttrain::cli {

struct DaemonProgram {
  TaskId task;
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path log;  // all processes of this daemon append to it
};

// A daemon's process that ended before stop() was called.
struct EndedDaemon {
  TaskId task;
  pid_t pid = 0;
  std::string how;               // "was killed by signal 9 (Killed)"
  std::optional<int> exit_code;  // none if a signal ended it
  std::optional<int> signal;
  std::string error;  // the last error that it logged; "" = it logged none
  std::filesystem::path log;
  Instant when;
  bool stays_down = false;
};

// Returns text such as "ps/1 (pid 17) was killed by signal 9 (Killed)".
std::string described(const EndedDaemon& ended);
// Returns the process's exit code if <sysexits.h> defines it, else kFailed.
ErrorCode error_code_of(const EndedDaemon& ended);

// Use it only in the main thread, which also runs `loop`.
class Supervisor {
 public:
  // Calls `say` with a line for the user, without a newline: which daemon ended, how, and whether it will be restarted.
  Supervisor(asio::io_context& loop, bool restarts, std::function<void(const std::string&)> say);
  // Stops all daemons.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts a daemon, which inherits `listener`. This process closes its own copy of the socket, so that the port closes
  // when the daemon dies. A restarted daemon listens on the same address.
  Status start(DaemonProgram daemon, ListeningSocket listener);

  // The newest kMostEnded processes that have ended, in the order of their end.
  const std::deque<EndedDaemon>& ended() const { return ended_; }
  // Returns the first daemon that has ended and won't be restarted, or null.
  const EndedDaemon* first_that_stays_down() const;
  bool stays_down(TaskId task) const;
  // Returns the path of a daemon's log, or "" if the task isn't one of these daemons.
  std::filesystem::path log_of(TaskId task) const;

  // Kills and restarts a daemon that hasn't answered for `silence`, as systemd's watchdog would. If the daemon was
  // started less than `silence` ago, leaves it alone. Returns false if the daemon won't be restarted, or isn't one of
  // these daemons.
  bool end_silent(TaskId task, Duration silence);

  // Sends SIGTERM to all daemons. After `deadline`, sends SIGKILL to those that still run. Returns when all have ended.
  void stop(Duration deadline);

 private:
  struct Kept {
    DaemonProgram daemon;
    std::string address;
    RestartPolicy policy;
    asio::steady_timer timer;
    Instant port_patience_ends;
    Instant started;
    std::uintmax_t log_begins = 0;  // size of the log when `child` was started
    std::optional<Child> child;
  };
  static constexpr std::size_t kMostEnded = 1000;

  void watch_children();
  void reap_all();
  void on_end(Kept& kept);
  void start_after(Kept& kept, Duration pause);
  void start_again(Kept& kept);
  Status spawn(Kept& kept, const ListeningSocket& listener);
  std::size_t running() const;

  asio::io_context& loop_;
  const bool restarts_;
  const std::function<void(const std::string&)> say_;
  asio::signal_set child_signals_;
  std::vector<std::unique_ptr<Kept>> kept_;  // all daemons, in the order in which start() was called
  std::deque<EndedDaemon> ended_;
  bool is_stopping_ = false;
};

}  // namespace disttrain::cli
