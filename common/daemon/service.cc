#include "common/daemon/service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>
#include <utility>

#include "common/daemon/clock.h"
#include "common/daemon/log/log_entry.h"
#include "common/daemon/log/systemd_journal.h"
#include "common/format_duration.h"

namespace disttrain::daemon {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxStatusBytes = 400;
constexpr Duration kAskEvery = seconds(1);
constexpr Duration kAskEveryUntilReady = milliseconds(50);
// While a daemon is busy, it asks systemd for this much more time, once a second.
constexpr Duration kBusyExtension = seconds(15);
constexpr Duration kLongestTry = seconds(60);  // a try may take so long, for example if no resolver answers

std::string microseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

std::string one_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.size() > kMaxStatusBytes) line = line.substr(0, kMaxStatusBytes) + "...";
  return line;
}

// Sends a report to systemd. Returns false if it wasn't sent. Unlike sd_notify(), it never waits when systemd's queue
// is full, because a systemd that hangs must not block a loop, and with it the training.
bool notify(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = path == nullptr ? 0 : std::strlen(path);
  if (length < 2 || length >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  const ssize_t sent = ::sendto(socket, state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), size);
  ::close(socket);
  return sent == static_cast<ssize_t>(state.size());
}

// Logs a warning before there is a Log.
void warn_early(const std::string& text) {
  const bool is_told = stderr_is_journal() &&
                       send_to_journal({{"MESSAGE", text}, {"PRIORITY", std::to_string(priority_of(Level::kWarn))}});
  if (!is_told) std::cerr << text << '\n';
}

// Returns the time between two checks of the loops: a quarter of the watchdog's period. So at least two reports reach
// the watchdog in each period, even if a loop answers a check late.
Duration check_interval() {
  std::uint64_t watchdog = 0;
  if (sd_watchdog_enabled(0, &watchdog) <= 0) return Duration::zero();
  return std::chrono::microseconds(watchdog) / 4;
}

}  // namespace

bool is_service() {
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

void tell_status(const std::string& text) {
  notify("STATUS=" + one_line(text));
}

// Since version 254, systemd itself can lengthen the pauses between restarts (RestartSteps=), but Debian 12 has version
// 252.
Status try_patiently(const std::function<Status()>& what, int tries) {
  Duration pause = milliseconds(200);
  for (int tried = 1;; ++tried, pause *= 2) {
    Status done = what();
    if (done || done.error().code != ErrorCode::kUnavailable || !is_service() || tried == tries) return done;
    if (tried == 1) warn_early(done.error().message + "; will try up to " + std::to_string(tries) + " times");
    tell_status(done.error().message + "; tries again in " + format_duration(pause) + " (try " +
                std::to_string(tried + 1) + " of " + std::to_string(tries) + ")");
    notify("EXTEND_TIMEOUT_USEC=" + microseconds(pause + kLongestTry));
    std::this_thread::sleep_for(pause);
  }
}

Service::Service(asio::io_context& loop, Log& log, std::vector<WatchedLoop> loops, std::function<ServiceState()> state)
    : log_(log), state_(std::move(state)), state_timer_(loop), watchdog_timer_(loop) {
  if (!is_service()) return;
  check_every_ = check_interval();
  for (WatchedLoop& watched : loops)
    watched_.push_back(Watched{std::move(watched), std::make_shared<std::atomic<std::uint64_t>>(0)});
  state_timer_.expires_after(Duration::zero());
  state_timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) ask_state();
  });
  if (check_every_ > Duration::zero()) check_loops();
}

void Service::ask_state() {
  const ServiceState state = state_();
  const std::string status = one_line(state.status);
  std::string message;
  if (state.is_ready && !is_ready_) message += "READY=1\n";
  if (status_ != status) message += "STATUS=" + status + "\n";
  // Don't ask for more time while a thread hangs, because that would also postpone the watchdog.
  if (state.is_busy && are_well_) message += "EXTEND_TIMEOUT_USEC=" + microseconds(kBusyExtension) + "\n";
  if (!message.empty() && notify(message)) {  // otherwise sent the next time
    is_ready_ = is_ready_ || state.is_ready;
    status_ = status;
  }
  state_timer_.expires_after(is_ready_ ? kAskEvery : kAskEveryUntilReady);
  state_timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) ask_state();
  });
}

// Returns whether the loop has run since the last check. The caller counts checks instead of time. So if the whole
// process was suspended for a while, no loop is blamed.
bool Service::has_moved(Watched& watched) const {
  const std::uint64_t answers = watched.answers->load();
  const std::uint64_t turns = watched.loop.turns ? watched.loop.turns() : 0;
  const bool has_answered = answers == watched.asked;
  const bool has_turned = std::exchange(watched.turns, turns) != turns;
  if (has_answered) {
    ++watched.asked;
    watched.loop.post([count = watched.answers] { count->fetch_add(1); });
  }
  return has_answered || has_turned;
}

void Service::check_loops() {
  are_well_ = true;
  for (Watched& watched : watched_) {
    watched.still = has_moved(watched) ? 0 : watched.still + 1;
    const Duration patience = std::max(watched.loop.patience, 2 * check_every_);
    const bool is_hung = watched.still * check_every_ >= patience;
    if (is_hung && !watched.is_hung)
      log_.error("the loop of thread " + watched.loop.name + " hasn't run for " +
                 format_duration(watched.still * check_every_) + ": systemd's watchdog gets no more reports");
    watched.is_hung = is_hung;
    are_well_ = are_well_ && !is_hung;
  }
  if (are_well_) notify("WATCHDOG=1");
  watchdog_timer_.expires_after(check_every_);
  watchdog_timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) check_loops();
  });
}

void Service::reloading() {
  notify("RELOADING=1\nMONOTONIC_USEC=" + microseconds(now().time_since_epoch()));
}

void Service::reloaded() {
  if (!is_ready_) return;  // the first READY=1 will also end the reload
  is_ready_ = notify("READY=1\nSTATUS=" + status_);
}

void Service::stopping() {
  if (!is_service()) return;
  notify("STOPPING=1\n");
  ask_state();
}

}  // namespace disttrain::daemon
