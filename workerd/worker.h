// Worker: a workerd process, with its membership and its step thread. Belongs to the main loop. Nothing here waits for
// tensors, files or the engine.
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
  // `on_refused`: the chief refuses this worker; the process should end with the error's code. All references outlive
  // the worker. One thread runs the loop.
  Worker(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
         EngineFactory make_engine, std::function<void(const Error&)> on_refused);
  ~Worker();

  // Listens (only for the chief's probes) and dials the chief.
  Status start();
  // Ends the loop in good order, when the chief grants it, after the current step. Ends it after Timeouts::leave in any
  // case, at once if no chief is there, and at once on a second call.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const;
  // Takes the settings that may change at run time.
  void change(const ClusterConfig& cluster);

  // What the worker waits for before it is ready; "": it is registered with the chief.
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
  void handle(const Other&) {}  // other messages aren't for workers, or are of a later version

  // Constant after construction.
  asio::io_context& loop_;
  daemon::Log& log_;
  daemon::Startup startup_;
  const std::function<void(const Error&)> on_refused_;
  transport::Transport& transport_;
  std::shared_ptr<bool> alive_;  // shared with tasks that other threads post

  // Owned by the main loop.
  JobId job_;  // the job that this worker holds, 0 = none
  Generation generation_;
  metrics::RpcBook requests_;
  std::string job_name_;      // set once the job is described or opened
  std::string pause_reason_;  // "": not paused
  std::vector<Owner> reach_;  // ps tasks of the last DescribeJob
  std::unique_ptr<ReachProbe> probe_;
  std::unique_ptr<transport::Listener> listener_;
  task::Membership membership_;
  StepThread step_;  // last: it posts to the others until it has ended
};

}  // namespace disttrain::workerd
