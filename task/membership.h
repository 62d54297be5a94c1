// What a ps and a worker are alike in: it registers with the chief, beats, passes its log lines on, hands on what the
// chief orders, and leaves in good order. While no chief is there it dials; what the task does meanwhile goes on.
//
// Belongs to the main loop, and calls the task on it only.
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
  // What it has and holds; who and where it is, is filled in.
  std::function<TaskHello()> make_hello;
  std::function<Heartbeat()> make_heartbeat;
  // Each time that a heartbeat is due, whether or not a chief is there.
  std::function<void()> before_heartbeat = {};
  // Orders; not of its end, and maybe of a later version.
  std::function<void(const wire::ControlMessage&)> on_order;
  // The chief knows nothing of what is held: it is to be dropped.
  std::function<void()> on_other_journal;
  // After the hello was answered, each time; and when no chief is there any more.
  std::function<void()> on_registered = {};
  std::function<void()> on_away = {};
  // The chief doesn't want it and won't: the process should end with the error's code.
  std::function<void(const Error&)> on_refused;
  // What goes on while no chief is there: "training goes on". "": nothing is to be said.
  std::function<std::string()> without_chief;
  // The loop is to end: the task may go.
  std::function<void()> end;
};

class Membership {
 public:
  // `requests`: counts what the chief says, also what is no order. All references outlive it; `startup` may change, see
  // change().
  Membership(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, const daemon::Startup& startup,
             metrics::RpcBook& requests, Handlers handlers);
  ~Membership();
  Membership(const Membership&) = delete;

  // Dials the chief and begins to beat.
  void open();
  // The chief sees it gone. Nothing is called afterwards; what can leave at once still does.
  void close();

  const Member& self() const { return self_; }
  // Says hello as another incarnation: it was removed from a job, or has dropped it, and may come back as a new one.
  void rejoin();

  // A report: see ChiefLink::tell().
  void tell(wire::ControlMessage message) { chief_.tell(std::move(message)); }
  void beat_now();
  const Timeouts& timeouts() const { return chief_.timeouts(); }

  // Ends it in good order: when the chief lets it go, which it does after `what` ("a checkpoint", "its step"; "":
  // nothing is to be waited for). At once where no chief is there, or goes away, or when this is called again, and
  // when Heartbeat::work hasn't grown for `patience`.
  void leave(Duration patience, const std::string& what);
  bool is_leaving() const { return is_leaving_; }

  // What it isn't ready for want of; "": it is registered with the chief.
  std::string waits_for() const;
  // For systemd. `job`: what the task is at, "" without a job.
  daemon::ServiceState state(const std::string& job) const;
  // `startup` is about to become this.
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
