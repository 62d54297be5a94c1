// The thread on which an evaluator computes. The main loop passes it evaluations and gets their results.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "common/config/cluster_config.h"
#include "common/daemon/log/log.h"
#include "workerd/core/evaluator_core.h"
#include "workerd/evaluator/checkpoint_evaluation.h"

namespace disttrain::workerd {

class EvaluationThread {
 public:
  // The thread calls `done` with the result of each evaluation that wasn't abandoned. `settings` are the evaluator's.
  // `log` must outlive this object.
  EvaluationThread(WorkerConfig settings, EngineFactory make_engine, daemon::Log& log,
                   std::function<void(EvaluationTicket, Result<Evaluated>)> done);
  // Ends after the batch that is being computed.
  ~EvaluationThread();
  EvaluationThread(const EvaluationThread&) = delete;

  // The main loop calls these.
  void begin(EvaluationTicket ticket, EvaluateCheckpoint order);
  // Ends the evaluation after the batch that is being computed.
  void abandon() { wanted_ = 0; }
  // Frees what the job takes. Call abandon() before, if an evaluation runs. A trainer's batch is cut short, too; other
  // engines compute it to its end.
  void release();

  // Runs a task on the thread, between two evaluations.
  void post(std::function<void()> task);
  // A number that grows while data is read or evaluated. Any thread may call it.
  std::uint64_t work() const { return work_; }
  // True while the job's data is read. Any thread may call it.
  bool is_reading() const { return is_reading_; }

 private:
  void run();
  void evaluate(EvaluationTicket ticket, const EvaluateCheckpoint& order);
  Status prepare(EvaluationTicket ticket, const EvaluateCheckpoint& order);
  bool is_cancelled() const;

  const WorkerConfig settings_;
  const EngineFactory make_engine_;
  daemon::Log& log_;
  const std::function<void(EvaluationTicket, Result<Evaluated>)> done_;
  std::atomic<std::uint64_t> wanted_ = 0;  // ticket of the newest evaluation; 0: none is wanted
  mutable std::atomic<std::uint64_t> work_ = 0;
  std::atomic<std::uint64_t> releases_ = 0;  // those that the thread hasn't come to
  std::atomic<bool> is_reading_ = false;

  // Owned by the thread.
  asio::io_context commands_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  asio::io_context engine_loop_{1};  // the engine's; runs only during a computation
  std::uint64_t running_ = 0;        // ticket of the evaluation that runs
  std::unique_ptr<CheckpointEvaluation> evaluation_;

  std::thread thread_;  // the last member, because the thread uses the others
};

}  // namespace disttrain::workerd
