// Tells systemd (sd_notify(3)) when a daemon is ready, reloads or stops, what its status is, and that all its loops
// run. Without systemd (no NOTIFY_SOCKET) the class does nothing.
//
// Belongs to the main loop, which never waits for systemd. If a report doesn't fit into systemd's queue, it is sent
// later. The daemon's status is read once a second and sent only if it changed, so the number of reports is bounded.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/daemon/log/log.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::daemon {

// The daemon's present state.
struct ServiceState {
  std::string status;  // one line, for `systemctl status`
  bool is_ready =
      false;  // the daemon has joined, or waits for a chief that isn't up; the chief is ready once it listens
  bool is_busy = false;  // the daemon restores, saves or leaves, which may take longer than systemd waits
};

// A thread whose loop must keep running, or the process counts as hung. The main loop is always watched too.
struct WatchedLoop {
  std::string name;  // the thread's name
  // Runs a task on that loop.
  std::function<void(std::function<void()>)> post;
  // Returns a counter that grows with each turn of the loop. Work that makes one turn long, such as a restore,
  // increases the counter again and again. May be empty. Any thread may call it.
  std::function<std::uint64_t()> turns;
  // how long the loop may stand still; zero means half of systemd's watchdog time
  Duration patience{};
};

class Service {
 public:
  // The loop calls `state` from its next turn on. All references must outlive the service.
  Service(asio::io_context& loop, Log& log, std::vector<WatchedLoop> loops, std::function<ServiceState()> state);

  // Reports that the daemon reads a new configuration. Call reloaded() afterwards, whether that succeeded or not.
  void reloading();
  void reloaded();
  // Reports that the process will end soon. `state` then says what the process still waits for.
  void stopping();

 private:
  struct Watched {
    WatchedLoop loop;
    std::shared_ptr<std::atomic<std::uint64_t>> answers;  // shared with the functions posted to the loop
    std::uint64_t asked = 0;
    std::uint64_t turns = 0;
    std::int64_t still = 0;  // number of checks in a row in which the loop hadn't run
    bool is_hung = false;
  };

  void ask_state();
  void check_loops();
  bool has_moved(Watched& watched) const;

  Log& log_;
  const std::function<ServiceState()> state_;
  Duration check_every_{};  // zero: no watchdog
  std::vector<Watched> watched_;
  bool are_well_ = true;
  bool is_ready_ = false;
  std::string status_;
  asio::steady_timer state_timer_;
  asio::steady_timer watchdog_timer_;
};

// Returns true if this process was started by systemd, or by another program that receives such reports.
bool is_service();

// Sets the status that `systemctl status` shows. For use before there is a Service and after its end. Uses only the
// first line of `text`, and at most a few hundred bytes of it.
void tell_status(const std::string& text);

// Calls `what`. If the process is a service, retries while `what` fails with kUnavailable (for example, because another
// process has the port), up to `tries` calls in all. The pauses double from 0.2 s, and the status says that the daemon
// retries. Without these retries systemd would restart the daemon at once, and soon give up. If the process isn't a
// service, `what` is called only once. Blocks, so use it only at start-up.
Status try_patiently(const std::function<Status()>& what, int tries = 5);
// The pauses of this many tries add up to 50 s. That is longer than the period of the units' start limit, so systemd
// never gives up restarting the daemon.
inline constexpr int kTriesWithoutEnd = 9;

}  // namespace disttrain::daemon
