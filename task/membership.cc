// A task that is told to end asks the chief for leave, and waits at most Timeouts::leave (a ps: Timeouts::leave_ps,
// because it may wait for a checkpoint). While its work makes progress, it waits as long again. It ends at once if no
// chief is connected, or if it is told a second time. Its end doesn't count for job.max_restarts, even without the
// chief's permission: otherwise an operator who restarts daemons would use up the restarts that are meant for crashes.
// The chief itself ends without asking, because its journal has everything that must not be lost.
#include "task/membership.h"

#include <unistd.h>

#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/daemon/host.h"
#include "common/daemon/random.h"
#include "common/format_duration.h"

namespace disttrain::task {

namespace {

constexpr std::size_t kLogLinesPerMessage = 500;

std::string joined(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

}  // namespace

Membership::Membership(asio::io_context& loop, transport::Transport& transport, daemon::Log& log,
                       const daemon::Startup& startup, metrics::RpcBook& requests, Handlers handlers)
    : loop_(loop),
      log_(log),
      startup_(startup),
      requests_(requests),
      handlers_(std::move(handlers)),
      self_{startup.task, startup.incarnation},
      leave_timer_(loop),
      heartbeat_timer_(loop),
      chief_(loop, transport, startup.cluster.chief.address, derive_timeouts(startup.cluster.heartbeat.timeout),
             link_handlers()) {}

Membership::~Membership() {
  close();
}

void Membership::close() {
  *alive_ = false;
  log_.set_listener({});
  leave_timer_.cancel();
  heartbeat_timer_.cancel();
  chief_.close();
}

void Membership::open() {
  log_.set_listener([this, alive = alive_] {
    asio::post(loop_, [this, alive] {
      if (*alive) send_logs();
    });
  });
  chief_.open();
  beat();
}

transport::ChiefLink::Handlers Membership::link_handlers() {
  return {.make_hello = [this] { return make_hello(); },
          .on_welcome = [this](const Welcome& welcome) { on_welcome(welcome); },
          .on_other_journal = [this] { on_other_journal(); },
          .on_message = [this](const wire::ControlMessage& message) { on_message(message); },
          .on_refused = [this](const Error& why) { handlers_.on_refused(why); },
          .on_away = [this](const std::string& why) { on_away(why); },
          .on_unsent = [this](const Error& why) { log_.error("can't tell the chief: " + why.message); },
          .on_unread =
              [this](const Error& why) {
                log_.error("dropped a message of the chief: " + why.message +
                           "; does the chief run the same version of disttrain?");
              }};
}

// ---- the chief

Hello Membership::make_hello() const {
  TaskHello task = handlers_.make_hello();
  task.member = self_;
  task.address = startup_.address;
  task.host = daemon::host_name();
  task.pid = static_cast<std::uint32_t>(::getpid());
  task.process = startup_.incarnation;
  task.journal = chief_.obedience().journal();
  task.term = chief_.obedience().term();
  task.chief = chief_.obedience().chief();
  task.metrics = startup_.metrics_address;
  Hello hello;
  hello.cluster = startup_.cluster.name;
  hello.cluster_hash = startup_.cluster.hash;
  hello.who = std::move(task);
  return hello;
}

void Membership::rejoin() {
  self_.incarnation = Incarnation(daemon::draw_number());
  chief_.redial();
}

// Drops the task's job. If the last hello named this job, the chief now believes that the task holds the job. So the
// task says hello again, without the job.
void Membership::on_other_journal() {
  const bool held = handlers_.make_hello().job.value != 0;
  handlers_.on_other_journal();
  if (held) rejoin();
}

void Membership::on_welcome(const Welcome& welcome) {
  for (const std::string& warning : welcome.warnings) log_.warn("the chief warns: " + warning);
  log_.info("registered with the chief at " + startup_.cluster.chief.address);
  if (is_leaving_) chief_.tell(LeaveRequest{});
  if (handlers_.on_registered) handlers_.on_registered();
  beat_now();
  send_logs();
}

void Membership::on_message(const wire::ControlMessage& message) {
  const Instant begin = daemon::now();
  if (!std::holds_alternative<LeaveGranted>(message)) {
    handlers_.on_order(message);
  } else if (is_leaving_) {
    log_.info("the chief granted the leave: ending");
    handlers_.end();
  }
  requests_.of(wire::name_of(message)).note(metrics::RpcCode::kOk, daemon::now() - begin);
}

// If the task is leaving, it ends now: without the chief it can get neither a last checkpoint nor the grant.
void Membership::on_away(const std::string& why) {
  if (is_leaving_) return handlers_.end();
  if (handlers_.on_away) handlers_.on_away();
  log_.warn("no connection to the chief at " + startup_.cluster.chief.address + " (" + why + "); " +
            joined("dialling it until it answers", handlers_.without_chief()));
}

// ---- heartbeats and log lines

void Membership::beat() {
  if (handlers_.before_heartbeat) handlers_.before_heartbeat();
  if (is_leaving_) chief_.tell(LeaveRequest{});  // repeats the request, in case the chief didn't get it
  beat_now();
  send_trace();
  heartbeat_timer_.expires_after(chief_.timeouts().heartbeat);
  heartbeat_timer_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (!cancelled && *alive) beat();
  });
}

void Membership::beat_now() {
  if (chief_.has_room()) chief_.tell(handlers_.make_heartbeat());
}

void Membership::send_logs() {
  while (chief_.has_room()) {
    LogLines lines = log_.take(kLogLinesPerMessage);
    if (lines.lines.empty() && lines.dropped == 0) return;
    chief_.tell(lines);
  }
}

void Membership::tell_trace(TraceEvents piece) {
  if (piece.piece == 0) trace_.clear();
  trace_.push_back(std::move(piece));
  send_trace();
}

void Membership::send_trace() {
  while (!trace_.empty() && chief_.has_room()) {
    trace_.front().clock = chief_.clock_offset();
    chief_.tell(std::move(trace_.front()));
    trace_.pop_front();
  }
}

// ---- leaving, and the state for systemd

void Membership::leave(Duration patience, const std::string& what) {
  if (is_leaving_ || !chief_.is_registered()) {
    log_.info(is_leaving_ ? "told to end again: ending at once"
                          : "told to end: ending at once, since no chief is connected");
    return handlers_.end();
  }
  is_leaving_ = true;
  log_.info("told to end: waiting until the chief grants the leave" + (what.empty() ? "" : ", after " + what));
  chief_.tell(LeaveRequest{});
  wait_to_be_let_go(patience);
}

void Membership::wait_to_be_let_go(Duration patience) {
  const std::uint64_t work = handlers_.make_heartbeat().work;
  leave_timer_.expires_after(patience);
  leave_timer_.async_wait([this, patience, work, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive) return;
    if (handlers_.make_heartbeat().work > work) return wait_to_be_let_go(patience);
    log_.warn("the chief hasn't granted the leave, and nothing progressed for " + format_duration(patience) +
              ": ending anyway");
    handlers_.end();
  });
}

std::string Membership::waits_for() const {
  return chief_.is_registered() ? "" : "the chief at " + startup_.cluster.chief.address;
}

daemon::ServiceState Membership::state(const std::string& job) const {
  const std::string chief = "the chief at " + startup_.cluster.chief.address;
  daemon::ServiceState state;
  state.is_ready = chief_.is_registered() || chief_.is_waiting();
  state.is_busy = is_leaving_;
  state.status = job;
  if (is_leaving_)
    state.status = joined(job, "told to end, waits for " + chief + " to grant the leave");
  else if (!chief_.is_registered())
    state.status = joined(job, "waits for " + chief);
  else if (job.empty())
    state.status = "no job; the chief is at " + startup_.cluster.chief.address;
  return state;
}

void Membership::change(const ClusterConfig& cluster) {
  if (cluster.heartbeat.timeout != startup_.cluster.heartbeat.timeout)
    log_.info(
        "heartbeat.timeout: the new value applies while no chief is connected; a running job keeps its time limits");
  chief_.set_own_timeouts(derive_timeouts(cluster.heartbeat.timeout));
}

}  // namespace disttrain::task
