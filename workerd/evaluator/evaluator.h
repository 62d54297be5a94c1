// Evaluator: the main object of `workerd --role evaluator`. It has the task's membership in the cluster, and passes the
// chief's orders to its thread. It runs on the main loop and never blocks on files or the engine.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
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
#include "workerd/core/evaluator_core.h"
#include "workerd/evaluator/evaluation_thread.h"

namespace disttrain::workerd {

class Evaluator {
 public:
  // Calls `on_refused` if the chief refuses this task; the process should then end with the error's code. Calls
  // `on_hung` if the evaluation thread hangs in an evaluation that isn't wanted any more, as Worker does. All
  // references must outlive the evaluator. Only one thread may run the loop.
  Evaluator(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
            EngineFactory make_engine, std::function<void(const Error&)> on_refused, std::function<void()> on_hung);
  ~Evaluator();

  // Dials the chief. Also listens, but only so that the chief can probe whether the evaluator is alive.
  Status start();
  // Asks the chief for leave, and ends the loop when the chief grants it. The chief gives the checkpoint to another
  // evaluator, or to the next process of this task.
  void leave();

  // For systemd.
  std::vector<daemon::WatchedLoop> loops();
  daemon::ServiceState state() const { return membership_.state(job_text()); }
  // Takes over the settings that may change while the daemon runs.
  void change(const ClusterConfig& cluster);

  // Says why the evaluator isn't ready. Empty if it is registered with the chief.
  std::string waits_for() const { return membership_.waits_for(); }
  void collect(metrics::Page& page) const;

 private:
  task::Handlers membership_handlers();
  TaskHello make_hello() const;
  Heartbeat make_heartbeat() const;
  std::string job_text() const;
  void on_arrival(std::unique_ptr<transport::Arrival> arrival);
  void on_order(const wire::ControlMessage& message);
  void on_done(EvaluationTicket ticket, const Result<Evaluated>& result);
  void carry_out(const EvaluatorActions& actions);
  void on_hung(const std::string& missed);

  // Constant after construction.
  asio::io_context& loop_;
  daemon::Log& log_;
  daemon::Startup startup_;
  const std::function<void(const Error&)> on_refused_;
  const std::function<void()> on_hung_;
  transport::Transport& transport_;
  std::shared_ptr<bool> alive_;  // shared with the functions that the thread posts to the main loop

  // Owned by the main loop.
  EvaluatorCore core_;
  Instant since_;             // when the newest evaluation began
  std::string job_name_;      // of the newest job
  Duration longest_batch_{};  // job.stall_timeout of the newest job
  std::uint64_t evaluated_ = 0;
  std::uint64_t failed_ = 0;
  metrics::RpcBook requests_;
  std::unique_ptr<transport::Listener> listener_;
  task::Membership membership_;
  EvaluationThread thread_;  // after the members above, because its thread uses them until it ends
  daemon::ReleaseDeadline release_;
};

}  // namespace disttrain::workerd
