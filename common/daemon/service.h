// What a daemon tells systemd of itself (sd_notify(3)): that it is ready, what it is at, that all its loops turn, that
// it reloads or ends. Where it wasn't started by systemd (no NOTIFY_SOCKET), nothing.
//
// Belongs to the main loop, which never waits for systemd: what it has no room for is told later. Bounded: the daemon
// is asked what it is at once a second, and that is told when it is something else than before.
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

// What a daemon is at.
struct ServiceState {
  std::string status;     // one line, for `systemctl status`
  bool is_ready = false;  // it has joined, or waits for a chief that isn't there yet; the chief: it listens
  bool is_busy = false;   // it restores, saves or leaves: longer than systemd would wait for it
};

// A thread's loop that must turn for the process to be well; the main loop is one by itself.
struct WatchedLoop {
  std::string name;  // as in its thread's
  // Runs a task on that loop.
  std::function<void(std::function<void()>)> post;
  // Grows also while one task takes long; may be empty. Any thread.
  std::function<std::uint64_t()> turns;
  // It may stand still for so long; zero: half of what systemd's watchdog allows.
  Duration patience{};
};

class Service {
 public:
  // `state` is called on the loop, from the next turn of it on. All references outlive it.
  Service(asio::io_context& loop, Log& log, std::vector<WatchedLoop> loops, std::function<ServiceState()> state);

  // A new configuration is being read; told again when that is over, whatever came of it.
  void reloading();
  void reloaded();
  // The process ends soon; `state` says for what it still waits.
  void stopping();

 private:
  struct Watched {
    WatchedLoop loop;
    std::shared_ptr<std::atomic<std::uint64_t>> answers;  // shared with what the loop still has to do for us
    std::uint64_t asked = 0;
    std::uint64_t turns = 0;
    std::int64_t still = 0;  // checks in a row that found it where it was
    bool is_hung = false;
  };

  void ask_state();
  void check_loops();
  bool has_moved(Watched& watched) const;

  Log& log_;
  const std::function<ServiceState()> state_;
  Duration check_every_{};  // zero: nobody watches
  std::vector<Watched> watched_;
  bool are_well_ = true;
  bool is_ready_ = false;
  std::string status_;
  asio::steady_timer state_timer_;
  asio::steady_timer watchdog_timer_;
};

// This process was started by systemd, or by somebody who listens as systemd does.
bool is_service();

// `systemctl status` shows it. For what is said before there is a Service, and at its end; lines after the first, and
// what is beyond a few hundred bytes, are left out.
void tell_status(const std::string& text);

// As a service, what fails with kUnavailable (a port that another process has) is tried again, with pauses that double
// from 0.2 s and a status that says so: systemd itself would begin anew at once, and give up. Otherwise once. Blocking,
// for start-up only.
Status try_patiently(const std::function<Status()>& what, int tries = 5);
// 50 s in pauses: more of them than the units' limit of starts allows in its time, so that it is tried for ever.
inline constexpr int kTriesWithoutEnd = 9;

}  // namespace disttrain::daemon
