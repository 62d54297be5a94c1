// Worker: the main object of a workerd process. It has the worker's membership in the cluster and its step thread. It
// runs on the main loop and never blocks on tensors, files or the engine.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/daemon/log/log.h"
#include "common/daemon/release_deadline.h"
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
  // Calls `on_refused` if the chief refuses this worker; the process should then end with the error's code. Calls
  // `on_hung` if the step thread hangs in a job that has ended: the process must then end at once, without waiting for
  // this thread (daemon::kHungCode). The log and the chief have been told why. All references must outlive the worker.
  // Only one thread may run the loop.
  Worker(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
         EngineFactory make_engine, std::function<void(const Error&)> on_refused, std::function<void()> on_hung);
  ~Worker();

  // Dials the chief. Also listens, but only so that the chief can probe whether the worker is alive.
  Status start();
  // Asks the chief for leave, and finishes the current step. Stops the loop when the chief grants the leave, or when
  // Heartbeat::work hasn't grown for Timeouts::leave. Stops the loop at once if no chief is connected, if the
  // connection breaks, or if this is the second call.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const;
  // Takes over the settings that may change while the daemon runs.
  void change(const ClusterConfig& cluster);

  // Says why the worker isn't ready. Empty if it is ready, that is, registered with the chief.
  std::string waits_for() const { return membership_.waits_for(); }
  void collect(metrics::Page& page) const;

 private:
  task::Handlers membership_handlers();
  TaskHello make_hello() const;
  Heartbeat make_heartbeat() const;
  void on_other_journal();
  void on_failed(const TaskFailed& failed);
  void on_closed(JobId job);
  void on_hung(const std::string& missed);
  void name_job(const std::string& name);
  std::string job_text() const;  // the job and its progress, for systemd; "" without a job
  void tell(wire::ControlMessage message);
  void probe_and_tell(JobDescribed described);
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  bool is_ours(JobId job, Generation generation) const { return job == job_ && generation == generation_; }

  void leave_older_job(JobId newer);
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
  void handle(const Other&) {}  // ignores messages that aren't for workers or are from a later version

  // Constant after construction.
  asio::io_context& loop_;
  daemon::Log& log_;
  daemon::Startup startup_;
  const std::function<void(const Error&)> on_refused_;
  const std::function<void()> on_hung_;
  transport::Transport& transport_;
  std::shared_ptr<bool> alive_;  // shared with the functions that the step thread posts to the main loop

  // Owned by the main loop.
  JobId job_;  // the job that this worker works for; 0 = none
  Generation generation_;
  // The jobs that the chief has closed and the step thread still holds. True: the chief has removed this worker from
  // the job, which goes on.
  std::map<JobId, bool> closing_;
  Duration longest_step_{};  // job.stall_timeout of the newest job
  metrics::RpcBook requests_;
  std::string job_name_;      // name of the newest job
  std::string pause_reason_;  // why the job is paused; "": it isn't paused
  std::vector<Owner> reach_;  // the ps tasks in the newest DescribeJob
  std::unique_ptr<ReachProbe> probe_;
  std::unique_ptr<transport::Listener> listener_;
  task::Membership membership_;
  std::map<TaskId, std::string> complaints_;  // the last logged reason why a task can't be reached
  StepThread step_;                           // after the members above, because its thread uses them until it ends
  daemon::ReleaseDeadline release_;
};

}  // namespace disttrain::workerd
