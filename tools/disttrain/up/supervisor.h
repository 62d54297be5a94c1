// Keeps the daemons of `up` alive, as systemd does for those of a real cluster.
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
  std::filesystem::path log;  // shared by its processes, one after the other
};

// A process of a daemon that ended before stop().
struct EndedDaemon {
  TaskId task;
  pid_t pid = 0;
  std::string how;               // "was killed by signal 9 (Killed)"
  std::optional<int> exit_code;  // none: a signal
  std::optional<int> signal;
  std::string error;  // the last error that it logged; "": none
  std::filesystem::path log;
  Instant when;
  bool stays_down = false;
};

// "ps/1 (pid 17) was killed by signal 9 (Killed)"
std::string described(const EndedDaemon& ended);
// The exit code where it is one of sysexits, else kFailed.
ErrorCode error_code_of(const EndedDaemon& ended);

// Lives on the loop, in the main thread.
class Supervisor {
 public:
  // `say` gets a line for people, without a newline: which daemon ended, how, and what is done about it.
  Supervisor(asio::io_context& loop, bool restarts, std::function<void(const std::string&)> say);
  // Stops, as stop().
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts a daemon, which inherits `listener`. The socket is closed here, so that the daemon's death closes its port.
  // A restarted daemon listens on the same address.
  Status start(DaemonProgram daemon, ListeningSocket listener);

  // The newest kMostEnded, in the order of their end.
  const std::deque<EndedDaemon>& ended() const { return ended_; }
  // The first daemon that isn't restarted; null: none.
  const EndedDaemon* first_that_stays_down() const;
  bool stays_down(TaskId task) const;
  // The log of a daemon that was started; "" of any other.
  std::filesystem::path log_of(TaskId task) const;

  // Kills a daemon that hasn't answered for `silence`, as systemd's watchdog would, unless it was started less than
  // `silence` ago. False: it isn't restarted, or isn't one of these daemons.
  bool end_silent(TaskId task, Duration silence);

  // Sends TERM to all, and after `deadline` KILL to those that remain. Returns when none is left.
  void stop(Duration deadline);

 private:
  struct Kept {
    DaemonProgram daemon;
    std::string address;
    RestartPolicy policy;
    asio::steady_timer timer;
    Instant port_patience_ends;
    Instant started;
    std::uintmax_t log_begins = 0;  // byte of the log at which this process begins
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
  std::vector<std::unique_ptr<Kept>> kept_;  // in the order of their start
  std::deque<EndedDaemon> ended_;
  bool is_stopping_ = false;
};

}  // namespace disttrain::cli
