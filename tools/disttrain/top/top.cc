// disttrain top [JOB]: shows a job and its tasks live. On a terminal it redraws until Ctrl-C, even after the job has
// ended and while the chief is lost. If stdout isn't a terminal, it prints one frame and ends.
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <iostream>

#include "common/bounded_json.h"
#include "common/daemon/startup.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/interrupts.h"
#include "tools/disttrain/terminal.h"
#include "tools/disttrain/top/frame.h"
#include "tools/disttrain/up/running_cluster.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kFrameInterval = 1s;
constexpr std::uint32_t kEventsAsked = 3;
constexpr std::size_t kColumnsOfNoTerminal = 120;

// Handles the signals that a terminal sends besides Ctrl-C: Ctrl-Z, Ctrl-\ and hangup. The terminal must be restored
// before this process stops or ends.
class TerminalSignals {
 public:
  TerminalSignals(asio::io_context& loop, Screen& screen) : signals_(loop, SIGHUP, SIGQUIT, SIGTSTP), screen_(screen) {
    wait();
  }
  // Returns the signal that ends `top`. 0: none came.
  int ended_by() const { return ended_by_; }

 private:
  void wait() {
    signals_.async_wait([this](const std::error_code& error, int signal) {
      if (error) return;
      if (signal == SIGTSTP) {  // Ctrl-Z
        screen_.leave();
        std::raise(SIGSTOP);
        screen_.enter();
      } else {
        ended_by_ = signal;
      }
      wait();
    });
  }

  asio::signal_set signals_;
  Screen& screen_;
  int ended_by_ = 0;
};

class Top {
 public:
  Top(const TopOptions& options, const ChiefTarget& target, ChiefClient& client, std::function<bool()> is_over)
      : options_(options), target_(target), client_(client), is_over_(std::move(is_over)) {
    view_.cluster = target.cluster.empty() ? "of chief " + target.address : target.cluster;
  }

  // Redraws once per second. Shows an error that may pass (kUnavailable, kTemporary) and goes on; returns any other
  // error.
  Status draw_on(Screen& screen) {
    for (auto next = Clock::now(); !is_over_(); rest_until(next)) {
      next = std::max(next + kFrameInterval, Clock::now());
      const Status looked = look();
      if (!looked && looked.error().code != ErrorCode::kUnavailable && looked.error().code != ErrorCode::kTemporary)
        return looked;
      view_.problem = looked ? "" : looked.error().message;
      if (!looked) view_.history.miss();
      screen.draw(top_frame(view_, terminal_size(STDOUT_FILENO), is_utf8_));
    }
    return {};
  }

  // Prints one frame. Asks the chief twice, because a rate needs two samples.
  Status print_once() {
    if (Status looked = look(); !looked) return looked;
    rest_until(Clock::now() + kFrameInterval);
    if (Status looked = look(); !looked) return looked;
    std::cout << top_frame(view_, TerminalSize{kColumnsOfNoTerminal, kAnyHeight}, is_utf8_) << std::flush;
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Asks the chief for the newest status and events. After an error it makes a new connection, because the old
  // connection may still bring the answer to an earlier request.
  Status look() {
    if (!is_connected_) {
      if (Status connected = client_.connect(target_, kFrameInterval); !connected) return connected;
    }
    is_connected_ = false;
    auto status = ask_status(client_, options_.job, false, Duration::zero());
    if (!status) return tl::unexpected<Error>(std::move(status.error()));
    const EventsRequest request{options_.job, options_.job.empty(), false, kEventsAsked};
    auto events = client_.ask<EventsAnswer>(request, kAnswerDeadline);
    if (!events) return tl::unexpected<Error>(std::move(events.error()));
    is_connected_ = true;
    view_.status = std::move(*status);
    view_.history.add(view_.status);
    view_.events = parse_bounded_json<Json>(events->json);
    return {};
  }

  void rest_until(Clock::time_point end) {
    while (!is_over_() && Clock::now() < end) client_.turn_until(end);
  }

  const TopOptions& options_;
  const ChiefTarget& target_;
  ChiefClient& client_;
  const std::function<bool()> is_over_;
  const bool is_utf8_ = is_utf8_locale();
  bool is_connected_ = true;
  TopView view_;
};

}  // namespace

int top(const TopOptions& options) {
  const auto cluster = find_running_cluster(options.cluster, options.chief);
  if (!cluster) return daemon::report("disttrain top", cluster.error());
  asio::io_context loop;
  Interrupts interrupts(loop);
  int ended_by = 0;  // the signal of TerminalSignals that ended `top`; 0 = none
  const TerminalSignals* signals = nullptr;
  const auto is_over = [&] { return interrupts.count() > 0 || (signals != nullptr && signals->ended_by() != 0); };
  ChiefClient client(loop, is_over);
  Status shown = client.connect(cluster->target, cluster->dial);
  if (shown) {
    Top top(options, cluster->target, client, is_over);
    if (isatty(STDOUT_FILENO) == 0) {
      shown = top.print_once();
    } else {
      Screen screen;
      const TerminalSignals terminal(loop, screen);
      signals = &terminal;
      shown = top.draw_on(screen);
      ended_by = terminal.ended_by();
      signals = nullptr;
    }
  }
  if (interrupts.count() > 0) return interrupts.exit_code();
  if (ended_by != 0) return 128 + ended_by;
  if (!shown) return daemon::report("disttrain top", shown.error());
  return 0;
}

}  // namespace disttrain::cli
