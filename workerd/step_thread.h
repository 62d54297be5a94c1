// StepThread: the thread on which a worker trains. Its event loop has the channels to the shards, and the same thread
// runs the engine. The main loop passes it the chief's messages and sends its reports to the chief.
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
  // The step thread calls `tell` for each message to the chief. `transport` and `log` must outlive this object.
  StepThread(StepThreadOptions options, transport::Transport& transport, daemon::Log& log,
             std::function<void(wire::ControlMessage)> tell);
  // Waits for the current computation to end, then drops the job.
  ~StepThread();
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  // The main loop calls the functions below. The step thread carries them out later, in the order of the calls.
  void describe(DescribeJob message);
  void open(OpenJob message, Member self, Timeouts timeouts);
  // Passes an event to the open job. Drops the event if the open job has another number or generation.
  void feed(JobId job, Generation generation, Event event);
  // Closes the job, and reports JobClosed when all its memory and channels are released.
  void close(CloseJob message);
  // Drops the job without a report. The worker calls this if the chief has a new journal and so doesn't know the job.
  void drop_job();
  void chief_went_away();
  void chief_returned();

  const ProgressBoard& board() const { return board_; }
  // A number that grows with each step and while data is read. Any thread may call it.
  std::uint64_t turns() const { return turns_; }
  // A number that grows while data is read or evaluated, for Heartbeat::work. Any thread may call it.
  std::uint64_t work() const { return pieces_; }
  // Runs `command` on the step thread, but not during a computation.
  void post(std::function<void()> command);
  // The counts of the current job. Between two jobs: of the last job.
  const FiguresBoard& figures() const { return figures_board_; }
  // The metrics of the open job's newest steps.
  const MetricsBoard& metrics() const { return metrics_board_; }

 private:
  void run();
  void run_deferred();

  void do_describe(const DescribeJob& message);
  void do_open(const OpenJob& message, Member self, const Timeouts& timeouts);
  void do_close(const CloseJob& message);
  void release();
  Status prepare(JobId job, const JobConfig& config);
  void warn(const std::string& notice);  // unless it is ""
  void ask_for_checkpoint();
  void show_loading(JobId job, Generation generation);
  // From now on the counts for metrics are for this job.
  void begin_figures(JobId job, const std::string& name);
  void note_data_error(ErrorCode code);
  // True if work for the job should stop, because the job is being closed or dropped. Any thread may call it.
  bool must_leave(JobId job) const;

  const StepThreadOptions options_;
  transport::Transport& transport_;
  daemon::Log& log_;
  const std::function<void(wire::ControlMessage)> tell_;
  ProgressBoard board_;
  FiguresBoard figures_board_;
  MetricsBoard metrics_board_;
  std::atomic<std::uint64_t> hurry_ = 0;  // work for this job and all before it must stop at once; kEveryJob: any job
  std::atomic<bool> stopping_ = false;    // the process is ending
  mutable std::atomic<std::uint64_t> turns_ = 0;
  mutable std::atomic<std::uint64_t> pieces_ = 0;  // the number that work() returns

  // Owned by the main loop.
  JobId ordered_;  // the job of the newest DescribeJob or OpenJob

  // Owned by the step thread.
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  bool working_ = false;                         // a computation is running; it may poll the loop
  std::vector<std::function<void()>> deferred_;  // commands that came during the computation; they run after it
  JobId figured_;                                // the job whose counts are in figures_
  JobId warned_;                                 // the job whose request for a checkpoint was answered by a warning
  WorkerFigures figures_;
  std::unique_ptr<PreparedJob> prepared_;
  std::unique_ptr<JobRunner> runner_;

  std::thread thread_;  // the last member, because the thread uses the other members
};

}  // namespace disttrain::workerd
