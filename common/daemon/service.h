// A daemon's reports to systemd (sd_notify(3)): ready, its status, all loops alive, reloading, ending. Without systemd
// (no NOTIFY_SOCKET) it does nothing.
//
// Belongs to the main loop, which never waits for systemd: a report that doesn't fit the queue is sent later. Bounded:
// the daemon's status is read once a second and sent only if it changed.
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
  std::string status;     // one line, for `systemctl status`
  bool is_ready = false;  // joined, or waits for a chief that isn't there yet; the chief: listens
  bool is_busy = false;   // restores, saves or leaves, which takes longer than systemd would wait
};

// A thread's loop that must turn for the process to be healthy. The main loop is always watched.
struct WatchedLoop {
  std::string name;  // the thread's name
  // Runs a task on that loop.
  std::function<void(std::function<void()>)> post;
  // Must also grow during one long task; may be empty. Any thread.
  std::function<std::uint64_t()> turns;
  // How long the loop may stand still; zero: half of systemd's watchdog time.
  Duration patience{};
};

class Service {
 public:
  // `state` is called on the loop, from its next turn on. All references outlive the service.
  Service(asio::io_context& loop, Log& log, std::vector<WatchedLoop> loops, std::function<ServiceState()> state);

  // Reports that a new configuration is being read. Call reloaded() when that is over, with any result.
  void reloading();
  void reloaded();
  // The process ends soon; `state` says what it still waits for.
  void stopping();

 private:
  struct Watched {
    WatchedLoop loop;
    std::shared_ptr<std::atomic<std::uint64_t>> answers;  // shared with tasks that the loop still has to run
    std::uint64_t asked = 0;
    std::uint64_t turns = 0;
    std::int64_t still = 0;  // consecutive checks in which the loop hadn't moved
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

// Whether systemd started this process, or a program that listens as systemd does.
bool is_service();

// Sets the status that `systemctl status` shows, before there is a Service and at its end. Only the first line is used,
// and at most a few hundred bytes.
void tell_status(const std::string& text);

// As a service, retries an attempt that fails with kUnavailable (a port that another process has), with pauses that
// double from 0.2 s and a status that says so: systemd itself would restart the daemon at once and soon give up.
// Otherwise tries once. Blocks, so only for start-up.
Status try_patiently(const std::function<Status()>& what, int tries = 5);
// 50 s of pauses: longer than the period of the units' start limit, so that systemd restarts the daemon for ever.
inline constexpr int kTriesWithoutEnd = 9;

}  // namespace disttrain::daemon
