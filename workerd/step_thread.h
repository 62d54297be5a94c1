// StepThread: the thread on which a worker trains. Its loop has the channels to the shards, and it computes on the same
// thread. The main loop passes it the chief's messages and sends its reports to the chief.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/daemon/log/log.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "workerd/job_runner.h"
#include "workerd/prepared_job.h"
#include "workerd/progress_board.h"

namespace disttrain::workerd {

struct StepThreadOptions {
  ClusterConfig cluster;
  TaskId self;
  EngineFactory make_engine;
};

class StepThread {
 public:
  // `tell` is called on the step thread. `transport` and `log` outlive it.
  StepThread(StepThreadOptions options, transport::Transport& transport, daemon::Log& log,
             std::function<void(wire::ControlMessage)> tell);
  // Drops the job; waits for the current computation.
  ~StepThread();
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  // From the main loop, in order.
  void describe(DescribeJob message);
  void open(OpenJob message, Member self, Timeouts timeouts);
  // For the open job of this number and generation; otherwise the event is dropped.
  void feed(JobId job, Generation generation, Event event);
  // Reports JobClosed when everything is released.
  void close(CloseJob message);
  // The chief has another journal and doesn't know the job. Reports nothing.
  void drop_job();
  void chief_went_away();
  void chief_returned();

  const ProgressBoard& board() const { return board_; }
  // Any thread. Grows with each step and while data is read.
  std::uint64_t turns() const { return turns_; }
  // Any thread. Grows while data is read or evaluated: see Heartbeat::work.
  std::uint64_t work() const { return pieces_; }
  // Runs `command` on the step thread, between computations.
  void post(std::function<void()> command);
  // Of the current job, or else of the last one.
  const FiguresBoard& figures() const { return figures_board_; }

 private:
  void run();
  void run_deferred();

  void do_describe(const DescribeJob& message);
  void do_open(const OpenJob& message, Member self, const Timeouts& timeouts);
  void do_close(const CloseJob& message);
  void release();
  Status prepare(JobId job, const JobConfig& config);
  void show_loading(JobId job, Generation generation);
  // Metrics: what follows is counted for this job.
  void begin_figures(JobId job, const std::string& name);
  void note_data_error(ErrorCode code);
  // Any thread: whether work for the job should stop.
  bool must_leave(JobId job) const;

  const StepThreadOptions options_;
  transport::Transport& transport_;
  daemon::Log& log_;
  const std::function<void(wire::ControlMessage)> tell_;
  ProgressBoard board_;
  FiguresBoard figures_board_;
  std::atomic<std::uint64_t> hurry_ = 0;  // the job to leave at once, or kEveryJob
  std::atomic<bool> stopping_ = false;    // the process ends
  mutable std::atomic<std::uint64_t> turns_ = 0;
  mutable std::atomic<std::uint64_t> pieces_ = 0;  // pieces of data

  // Owned by the main loop.
  JobId ordered_;  // the last job that the chief named

  // Owned by the step thread.
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  bool working_ = false;                         // inside a computation, which may poll the loop
  std::vector<std::function<void()>> deferred_;  // commands that came during the computation
  JobId figured_;                                // the job of figures_
  WorkerFigures figures_;
  std::unique_ptr<PreparedJob> prepared_;
  std::unique_ptr<JobRunner> runner_;

  std::thread thread_;  // last
};

}  // namespace disttrain::workerd
