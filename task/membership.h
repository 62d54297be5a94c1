// A task's membership of its cluster, which psd and workerd share. It registers the task with the chief, sends
// heartbeats and log lines, passes the chief's orders to the task, and ends the task in good order. While no chief is
// connected, it dials, and the task's work goes on.
//
// A Membership belongs to the main loop, and calls its handlers only there.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"
#include "common/metrics/rpc.h"
#include "transport/chief_link.h"

namespace disttrain::task {

// The ps or the worker implements these functions. before_heartbeat, on_registered and on_away may be empty.
struct Handlers {
  // Makes the hello with the job and shards that the task holds. Leave the fields for the member and its addresses
  // empty: Membership fills them in.
  std::function<TaskHello()> make_hello;
  std::function<Heartbeat()> make_heartbeat;
  // Called each time a heartbeat is due, with or without a chief.
  std::function<void()> before_heartbeat = {};
  // Gets the chief's orders, except LeaveGranted. An order may be of a type that this task doesn't handle.
  std::function<void(const wire::ControlMessage&)> on_order;
  // The chief has another journal, so it knows nothing of the task's job. The task must drop the job.
  std::function<void()> on_other_journal;
  // on_registered: the chief has welcomed the task, for the first time or again. on_away: the connection to the chief
  // is lost, or the first attempt to dial has failed.
  std::function<void()> on_registered = {};
  std::function<void()> on_away = {};
  // The chief refuses this task for good: the process should end with the error's code.
  std::function<void(const Error&)> on_refused;
  // Returns words for the log line that says that no chief is connected, such as "training goes on"; may be "".
  std::function<std::string()> without_chief;
  // The task must end its loop now.
  std::function<void()> end;
};

class Membership {
 public:
  // The membership counts all messages of the chief in `requests`. All references must outlive the membership. Call
  // change() before `startup` changes.
  Membership(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, const daemon::Startup& startup,
             metrics::RpcBook& requests, Handlers handlers);
  ~Membership();
  Membership(const Membership&) = delete;

  // Dials the chief and starts the heartbeats.
  void open();
  // Closes the connection, so that the chief sees that the task is gone. No handler is called after that. Queued
  // messages are sent as far as the socket takes them at once.
  void close();

  const Member& self() const { return self_; }
  // Says hello with a new incarnation. Call it when the task was removed from a job or has dropped its job: as a new
  // member it may join again.
  void rejoin();

  // Sends a message to the chief, as ChiefLink::tell() does.
  void tell(wire::ControlMessage message) { chief_.tell(std::move(message)); }
  void beat_now();
  // Sends a piece of a trace to the chief, with the clock's offset. Pieces wait while much else is queued or no chief
  // is connected. The first piece of a trace replaces the waiting pieces of an older one.
  void tell_trace(TraceEvents piece);
  const Timeouts& timeouts() const { return chief_.timeouts(); }

  // Asks the chief for leave, and ends the task when the chief grants it. `what` is for the log: it names the work that
  // must be done before the chief grants the leave, such as "a checkpoint"; may be "". The task ends without the grant
  // if no chief is connected, if the connection breaks, if leave() is called again, or if Heartbeat::work hasn't grown
  // for `patience`.
  void leave(Duration patience, const std::string& what);

  // While the task isn't ready, returns words for the chief that it waits for. Returns "" once the task is registered
  // with the chief.
  std::string waits_for() const;
  // The state that systemd shows. `job`: a text about the task's job; "" if it has none.
  daemon::ServiceState state(const std::string& job) const;
  // Applies the new settings of `cluster`. Call it before `cluster` replaces the settings in `startup`.
  void change(const ClusterConfig& cluster);

 private:
  transport::ChiefLink::Handlers link_handlers();
  Hello make_hello() const;
  void on_other_journal();
  void on_welcome(const Welcome& welcome);
  void on_message(const wire::ControlMessage& message);
  void on_away(const std::string& why);
  void beat();
  void send_logs();
  void send_trace();
  void wait_to_be_let_go(Duration patience);

  asio::io_context& loop_;
  daemon::Log& log_;
  const daemon::Startup& startup_;
  metrics::RpcBook& requests_;
  const Handlers handlers_;

  Member self_;
  bool is_leaving_ = false;
  std::deque<TraceEvents> trace_;  // the pieces that wait
  asio::steady_timer leave_timer_;
  asio::steady_timer heartbeat_timer_;
  transport::ChiefLink chief_;
  // False once the membership is closed. Tasks on the loop share it, because they may run after that.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::task
