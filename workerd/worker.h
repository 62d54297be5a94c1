// Worker: what a workerd process is, between its membership and its step thread. Belongs to the main loop. Nothing here
// waits for tensors, files or the engine.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/daemon/log/log.h"
#include "common/daemon/service.h"
#include "common/daemon/startup.h"
#include "common/metrics/page.h"
#include "common/metrics/rpc.h"
#include "task/membership.h"
#include "transport/connection.h"
#include "workerd/reach_probe.h"
#include "workerd/step_thread.h"

namespace disttrain::workerd {

class Worker {
 public:
  // `on_refused`: the chief doesn't want this worker; the process should end with the error's code. All references
  // outlive the worker, the loop is run by one thread.
  Worker(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
         EngineFactory make_engine, std::function<void(const Error&)> on_refused);
  ~Worker();

  // Listens (the chief probes the address; nobody else has business there) and dials the chief.
  Status start();
  // Ends the loop in good order: when the chief lets it go, after the step that it is at. After Timeouts::leave in any
  // case, and at once where no chief is there, or when it is called again.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const;
  // What may change while it runs.
  void change(const ClusterConfig& cluster);

  // What it isn't ready for want of; "": it is registered with the chief.
  std::string waits_for() const { return membership_.waits_for(); }
  void collect(metrics::Page& page) const;

 private:
  task::Handlers membership_handlers();
  TaskHello make_hello() const;
  Heartbeat make_heartbeat() const;
  void on_other_journal();
  void name_job(const std::string& name);
  std::string job_text() const;  // for systemd; "": no job
  void tell(wire::ControlMessage message);
  void probe_and_tell(JobDescribed described);
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  bool is_ours(JobId job, Generation generation) const { return job == job_ && generation == generation_; }

  void handle(const DescribeJob& message);
  void handle(const OpenJob& message);
  void handle(const StartJob& message);
  void handle(const LeaseGrant& message);
  void handle(const StopJob& message);
  void handle(const SetEvaluator& message);
  void handle(const Evaluate& message);
  void handle(const CloseJob& message);
  void handle(const MarkChannels& message);
  void handle(const PauseJob& message);
  template <typename Other>
  void handle(const Other&) {}  // not for workers, or of a later version

  // Constant after construction.
  asio::io_context& loop_;
  daemon::Log& log_;
  daemon::Startup startup_;
  const std::function<void(const Error&)> on_refused_;
  transport::Transport& transport_;
  std::shared_ptr<bool> alive_;  // shared with what other threads post

  // The main loop's.
  JobId job_;  // what we hold, 0 = nothing
  Generation generation_;
  metrics::RpcBook requests_;
  std::string job_name_;      // once it is described or opened
  std::string pause_reason_;  // "": it doesn't pause
  std::vector<Owner> reach_;  // ps tasks of the last DescribeJob
  std::unique_ptr<ReachProbe> probe_;
  std::unique_ptr<transport::Listener> listener_;
  task::Membership membership_;
  StepThread step_;  // last: it posts to the others until it has ended
};

}  // namespace disttrain::workerd
