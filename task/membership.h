// What psd and workerd share: it registers with the chief, sends heartbeats and log lines, passes on the chief's
// orders, and leaves in good order. While no chief is there it dials, and the task's work goes on.
//
// Belongs to the main loop, and calls its handlers only there.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"
#include "common/metrics/rpc.h"
#include "transport/chief_link.h"

namespace disttrain::task {

// The task's own part. before_heartbeat, on_registered and on_away may be empty.
struct Handlers {
  // The job and shards that the task holds; Membership fills in the member and its addresses.
  std::function<TaskHello()> make_hello;
  std::function<Heartbeat()> make_heartbeat;
  // Called each time a heartbeat is due, with or without a chief.
  std::function<void()> before_heartbeat = {};
  // The chief's orders, except LeaveGranted. May be of a later version.
  std::function<void(const wire::ControlMessage&)> on_order;
  // The chief has another journal and knows nothing of the task's job: the task must drop it.
  std::function<void()> on_other_journal;
  // on_registered: after each answered hello. on_away: when the chief is gone.
  std::function<void()> on_registered = {};
  std::function<void()> on_away = {};
  // The chief refuses this task for good: the process should end with the error's code.
  std::function<void(const Error&)> on_refused;
  // What goes on while no chief is there, such as "training goes on"; "" adds nothing to the log line.
  std::function<std::string()> without_chief;
  // The task may end its loop.
  std::function<void()> end;
};

class Membership {
 public:
  // `requests`: counts the chief's messages, orders or not. All references outlive it; for changes of `startup` see
  // change().
  Membership(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, const daemon::Startup& startup,
             metrics::RpcBook& requests, Handlers handlers);
  ~Membership();
  Membership(const Membership&) = delete;

  // Dials the chief and starts the heartbeats.
  void open();
  // Closes the link, so that the chief sees the task gone. No handler is called afterwards. Queued messages that the
  // socket takes at once are still sent.
  void close();

  const Member& self() const { return self_; }
  // Says hello as a new incarnation: the task was removed from a job or has dropped it, and may join again.
  void rejoin();

  // Sends a report: see ChiefLink::tell().
  void tell(wire::ControlMessage message) { chief_.tell(std::move(message)); }
  void beat_now();
  const Timeouts& timeouts() const { return chief_.timeouts(); }

  // Ends the task in good order: when the chief grants it, after `what` ("a checkpoint", "its step"; "": nothing to
  // wait for). Ends it at once if no chief is there or the chief goes away, or on a second call; and when
  // Heartbeat::work hasn't grown for `patience`.
  void leave(Duration patience, const std::string& what);

  // What the task waits for before it is ready; "": it is registered with the chief.
  std::string waits_for() const;
  // For systemd. `job`: what the task is doing; "" without a job.
  daemon::ServiceState state(const std::string& job) const;
  // Call it before `startup` becomes `cluster`.
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
  void wait_to_be_let_go(Duration patience);

  asio::io_context& loop_;
  daemon::Log& log_;
  const daemon::Startup& startup_;
  metrics::RpcBook& requests_;
  const Handlers handlers_;

  Member self_;
  bool is_leaving_ = false;
  asio::steady_timer leave_timer_;
  asio::steady_timer heartbeat_timer_;
  transport::ChiefLink chief_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with what other threads post
};

}  // namespace disttrain::task
