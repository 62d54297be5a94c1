// JobRunner runs one open job on the step thread. It owns the job's WorkerCore and carries out its actions: it calls
// the engine, the input and the exchange, and holds the memory of parameters and gradients. See "The life of a step" in
// ARCHITECTURE.md.
//
// All calls come from the step thread. If the core returns Compute, the runner only remembers it. The step thread then
// calls work(), which starts the engine. A short computation runs inside work(), so that it needs no thread switch. A
// long one runs elsewhere, and the loop runs meanwhile (engine/engine.h).
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/os/arena.h"
#include "common/timeouts.h"
#include "engine/engine.h"
#include "input/prefetcher.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"
#include "workerd/arrivals.h"
#include "workerd/core/worker_core.h"
#include "workerd/evaluation_run.h"
#include "workerd/exchange/exchange.h"
#include "workerd/prepared_job.h"
#include "workerd/progress_board.h"
#include "workerd/step_parts.h"
#include "workerd/worker_trace.h"

namespace disttrain::workerd {

// Objects that the runner uses but doesn't own. They must outlive the runner.
struct RunnerWorld {
  asio::io_context& loop;
  transport::Transport& transport;
  const ClusterConfig& cluster;
  Timeouts timeouts;
  Member self;
  ProgressBoard& board;
  WorkerFigures& figures;  // counts of the job, also from its earlier runners; owned by the step thread
  FiguresBoard& figures_board;
  MetricsBoard& metrics_board;
  std::function<bool()> must_leave;                  // true if the job is being closed: an evaluation then ends early
  std::function<void(wire::ControlMessage)> tell;    // sends a message to the chief
  std::function<void(std::uint64_t)> warn_of_trace;  // the trace lacks so many events
  std::function<void(const std::string&)> warn;      // of something that the operator should know, unless it is ""
};

class JobRunner final : public ExchangeHandler, private EngineSink {
 public:
  // job.layout must have passed validate() and must describe the engine's model. The constructor allocates all memory,
  // writes to all of it, and opens the exchange.
  JobRunner(RunnerWorld world, PreparedJob& prepared, OpenJob job);
  ~JobRunner() override;

  // Passes an event to the core. StepThread calls it only for the events that the chief causes: Start, Paused,
  // LeaseGranted, MarkRequested, StopRequested, BecomesEvaluator, EvaluateRequested, ChiefAway and ChiefReturned.
  void feed(const Event& event);

  // True if a computation is due; work() starts it. During work() the runner may let the loop run.
  bool has_work() const { return !computing_ && (can_compute() || evaluation_.has_value()); }
  void work();

  JobId job() const { return job_.job; }
  Generation generation() const { return job_.generation; }
  // The number of workers when this worker opened the job.
  std::uint32_t workers() const { return static_cast<std::uint32_t>(job_.roster.members.size()); }

  void on_channel_opened(ShardId shard, Sequence last) override {
    wires_ = exchange_->wires();
    feed(ChannelOpened{shard, last});
  }
  void on_channel_lost(ShardId shard, const std::string& reason, Duration lasts) override {
    feed(ChannelLost{shard, reason, lasts});
  }
  void on_unreachable(ShardId shard, const std::string& reason, Duration lasts) override {
    feed(PsUnreachable{shard, reason, lasts});
  }
  void on_reached(ShardId shard) override { feed(PsReached{shard}); }
  void on_refused(const Error& why) override { feed(Broken{why}); }
  void on_parameters(ShardId shard, const Parameters& parameters) override;
  void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) override;
  void on_mark_taken(ShardId shard, const MarkTaken& taken) override { feed(MarkTakenArrived{shard, taken}); }
  std::span<float> landing() override { return parameters_[core_.landing()]->floats(); }

 private:
  // Actions.
  void carry_out(const ReportOpened& action);
  void carry_out(const RequestLease& action);
  void carry_out(const RequestBatch& action);
  void carry_out(const DropBatch& action);
  void carry_out(const SendPull& action);
  void carry_out(const SendPush& action);
  void carry_out(const SendMark& action);
  void carry_out(const LoadValues& action);
  void carry_out(const Compute& action);
  void carry_out(const Recompute& action);
  void carry_out(const DropCompute& action);
  void carry_out(const RunEvaluation& action);
  void carry_out(const ReportEvaluated& action);
  void carry_out(const ReportFinished& action);
  void carry_out(const Accuse& action);
  void carry_out(const Fail& action);

  void feed_one(const Event& event);
  void supply_batches();
  // The engine calls these.
  void ready(std::uint64_t begin, std::uint64_t end) override;
  void finished(const Result<EngineOutput>& output) override;

  bool can_compute() const;
  void compute();
  void prepare_next();
  void end_computation();
  // Adds the gradients [begin, end) of a part of the step to those of its other parts.
  void add_part(std::uint64_t begin, std::uint64_t end);
  void computed(const EngineOutput& output);
  void evaluate();
  void start(const EngineInput& input);
  bool is_last_part() const { return !parts_ || parts_->is_last(); }
  Status use_buffers(std::uint32_t parameters, std::uint32_t gradients);
  void post_progress();
  // The counts for metrics: count_step() updates them after each step, and show_figures() publishes them.
  void count_step();
  void show_figures();
  // Turns the trace on and off with the global step.
  void follow_trace();
  void tell_trace(std::optional<TraceTake> take);
  void tick();

  // Constant after construction.
  const RunnerWorld world_;
  PreparedJob& prepared_;
  const OpenJob job_;
  std::vector<std::unique_ptr<Memory>> parameters_;
  std::vector<std::unique_ptr<Memory>> gradients_;
  // Of the step before, while the exchange with these gradients is over. Null unless the engine clears gradients ahead.
  std::unique_ptr<Memory> spare_gradients_;

  // Owned by the step thread.
  WorkerCore core_;
  Actions actions_;
  Arrivals arrivals_;
  Instant now_{};                            // time of the event that is being handled
  Instant shown_{};                          // time at which world_.figures were last published
  Progress counted_;                         // the core's progress when world_.figures were last updated
  WorkerFigures before_;                     // the counts of the job's earlier runners
  StepMetrics step_metrics_;                 // of the steps since show_figures() was last called
  bool is_step_skipped_ = false;             // a shard skipped the current step
  std::optional<Compute> compute_;           // the step that is due or being computed
  std::optional<StepParts> parts_;           // with train.accumulate > 1
  bool is_step_begun_ = false;               // compute_'s first part has been started
  std::uint64_t part_end_ = 0;               // the gradients of the current part before this word are added
  StepSums step_;                            // over the parts of compute_ that are done
  std::optional<RunEvaluation> evaluation_;  // the evaluation that is due or runs
  std::optional<EvaluationRun> run_;         // the evaluation that runs
  bool computing_ = false;                   // the engine is at work
  bool has_values_ = false;                  // the core waits for ValuesLoaded
  bool is_inside_start_ = false;             // the engine may be computing on this thread
  std::optional<Error> broken_;              // an action failed; feed() tells the core
  // The indices of the parameter buffer and of the gradient buffer that the engine has open.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> buffers_;
  std::uint64_t read_before_ = 0;  // bytes that the training set had read when this runner began
  std::unique_ptr<input::Prefetcher> input_;
  std::unique_ptr<input::ReadyBatch> batch_;  // the batch of the next computation
  BatchTicket prepared_batch_;                // the newest batch that the engine has prepared
  bool awaiting_batch_ = false;
  std::shared_ptr<bool> alive_;  // shared with callbacks that may outlive the runner
  asio::steady_timer ticker_;
  WorkerTrace trace_;
  Step global_;                         // the global step of the newest parameters: shard 0's version
  Wires wires_ = 0;                     // exchange_->wires() when a channel was last opened
  std::unique_ptr<Exchange> exchange_;  // the last member, because it calls the runner
};

}  // namespace disttrain::workerd
