#include "tools/disttrain/up/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include "common/daemon/clock.h"
#include "common/format_duration.h"
#include "tools/disttrain/log_tail.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {

namespace {

using namespace std::chrono_literals;

// How long to retry to bind the port of a daemon that has ended. One of its old connections, or a new connection of
// another process, may use the port for a moment.
constexpr Duration kRebindPatience = 10s;
constexpr Duration kPortPause = 100ms;

std::string pause_text(Duration pause) {
  return pause == Duration::zero() ? "" : " in " + format_duration(pause);
}

}  // namespace

std::string described(const EndedDaemon& ended) {
  return to_string(ended.task) + " (pid " + std::to_string(ended.pid) + ") " + ended.how;
}

ErrorCode error_code_of(const EndedDaemon& ended) {
  const int code = ended.exit_code.value_or(0);
  return is_sysexit(code) ? static_cast<ErrorCode>(code) : ErrorCode::kFailed;
}

Supervisor::Supervisor(asio::io_context& loop, bool restarts, std::function<void(const std::string&)> say)
    : loop_(loop), restarts_(restarts), say_(std::move(say)), child_signals_(loop, SIGCHLD) {
  watch_children();
}

Supervisor::~Supervisor() {
  constexpr Duration kEnough = 1s;
  stop(kEnough);
}

Status Supervisor::start(DaemonProgram daemon, ListeningSocket listener) {
  auto kept = std::make_unique<Kept>(Kept{std::move(daemon), listener.address, RestartPolicy(restarts_),
                                          asio::steady_timer(loop_), Instant(), Instant(), 0, std::nullopt});
  if (Status spawned = spawn(*kept, listener); !spawned) return spawned;
  kept_.push_back(std::move(kept));
  return {};
}

Status Supervisor::spawn(Kept& kept, const ListeningSocket& listener) {
  std::error_code is_new;
  const std::uintmax_t logged = std::filesystem::file_size(kept.daemon.log, is_new);
  kept.log_begins = is_new ? 0 : logged;
  auto child = Child::start(kept.daemon.task, kept.daemon.program, kept.daemon.arguments, listener, kept.daemon.log);
  if (!child) return tl::unexpected<Error>(std::move(child.error()));
  kept.child.emplace(std::move(*child));
  kept.started = daemon::now();
  kept.policy.on_start(kept.started);
  return {};
}

void Supervisor::watch_children() {
  child_signals_.async_wait([this](const asio::error_code& aborted, int) {
    if (aborted) return;
    reap_all();
    watch_children();
  });
}

void Supervisor::reap_all() {
  for (const auto& kept : kept_)
    if (kept->child->reap() && !is_stopping_) on_end(*kept);
}

void Supervisor::on_end(Kept& kept) {
  const Instant now = daemon::now();
  const std::optional<int> exit_code = kept.child->exit_code();
  // Training goes on without the chief, but the job can't end without it.
  const bool is_missed = kept.daemon.task.role == Role::kChief && running() > 0;
  const RestartPolicy::Verdict verdict = kept.policy.on_end(now, exit_code, is_missed);
  const std::string error = exit_code.value_or(0) != 0 ? last_error(kept.daemon.log, kept.log_begins) : "";
  ended_.push_back(EndedDaemon{kept.daemon.task, kept.child->pid(), kept.child->how_it_ended(), exit_code,
                               kept.child->signal(), error, kept.daemon.log, now, !verdict.pause});
  if (ended_.size() > kMostEnded) ended_.pop_front();
  const std::string what = described(ended_.back()) + (error.empty() ? "" : " (" + error + ")");
  if (!verdict.pause) return say_(what + "; it stays down: " + verdict.why_not);
  say_(what + "; restarting it" + pause_text(*verdict.pause));
  kept.port_patience_ends = now + *verdict.pause + kRebindPatience;
  start_after(kept, *verdict.pause);
}

void Supervisor::start_after(Kept& kept, Duration pause) {
  kept.timer.expires_after(pause);
  kept.timer.async_wait([this, &kept](const asio::error_code& aborted) {
    if (!aborted && !is_stopping_) start_again(kept);
  });
}

void Supervisor::start_again(Kept& kept) {
  auto listener = bind_listener(kept.address);
  const bool is_taken = !listener && listener.error().code == ErrorCode::kUnavailable;
  if (is_taken && daemon::now() < kept.port_patience_ends) return start_after(kept, kPortPause);
  const Status started = listener ? spawn(kept, *listener) : tl::unexpected<Error>(listener.error());
  if (started) return;
  const auto end = std::find_if(ended_.rbegin(), ended_.rend(),
                                [&kept](const EndedDaemon& ended) { return ended.task == kept.daemon.task; });
  if (end == ended_.rend()) return;  // its entry was dropped, because kMostEnded others have been added since
  end->stays_down = true;
  end->how += "; it couldn't be restarted: " + started.error().message;
  say_(described(*end));
}

std::size_t Supervisor::running() const {
  return static_cast<std::size_t>(
      std::count_if(kept_.begin(), kept_.end(), [](const auto& kept) { return kept->child->is_running(); }));
}

const EndedDaemon* Supervisor::first_that_stays_down() const {
  const auto found =
      std::find_if(ended_.begin(), ended_.end(), [](const EndedDaemon& ended) { return ended.stays_down; });
  return found == ended_.end() ? nullptr : &*found;
}

bool Supervisor::stays_down(TaskId task) const {
  return std::any_of(ended_.begin(), ended_.end(),
                     [task](const EndedDaemon& ended) { return ended.task == task && ended.stays_down; });
}

std::filesystem::path Supervisor::log_of(TaskId task) const {
  for (const auto& kept : kept_)
    if (kept->daemon.task == task) return kept->daemon.log;
  return {};
}

bool Supervisor::end_silent(TaskId task, Duration silence) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [task](const auto& kept) { return kept->daemon.task == task; });
  if (!restarts_ || found == kept_.end() || stays_down(task)) return false;
  const Child& child = *(*found)->child;
  if (child.is_running() && daemon::now() - (*found)->started >= silence) {
    say_(to_string(task) + " (pid " + std::to_string(child.pid()) + ") hasn't answered for " +
         format_duration(silence) + ": killing it to restart it");
    child.send(SIGKILL);
  }
  return true;
}

void Supervisor::stop(Duration deadline) {
  if (!is_stopping_) reap_all();
  is_stopping_ = true;
  // Sends SIGTERM to the chief last, because the other daemons tell the chief that they leave. Also sends SIGCONT,
  // because a process that is stopped (SIGSTOP) handles SIGTERM only when it continues.
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
    (*kept)->timer.cancel();
    (*kept)->child->send(SIGTERM);
    (*kept)->child->send(SIGCONT);
  }
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (running() > 0 && std::chrono::steady_clock::now() < end) {
    loop_.restart();
    loop_.run_one_until(end);
    reap_all();
  }
  for (const auto& kept : kept_) kept->child->send(SIGKILL);
  for (const auto& kept : kept_) kept->child->reap_killed();
}

}  // namespace disttrain::cli
