// JobRunner: one open job on the step thread. It carries out its WorkerCore's actions with the engine, the input, the
// exchange and the memory of parameters and gradients. See "The life of a step" in ARCHITECTURE.md.
//
// All calls come from the step thread. Handlers only note that a computation is due; then the step thread calls work(),
// which computes inline. So no thread switch lies on the path of a step.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"
#include "workerd/core/worker_core.h"
#include "workerd/exchange/exchange.h"
#include "workerd/flat_memory.h"
#include "workerd/input/prefetcher.h"
#include "workerd/prepared_job.h"
#include "workerd/progress_board.h"

namespace disttrain::workerd {

// What the runner uses and doesn't own; all of it outlives the runner.
struct RunnerWorld {
  asio::io_context& loop;
  transport::Transport& transport;
  const ClusterConfig& cluster;
  Timeouts timeouts;
  Member self;
  ProgressBoard& board;
  WorkerFigures& figures;  // of its job so far; owned by the step thread
  FiguresBoard& figures_board;
  std::function<bool()> must_leave;                // for a long evaluation: whether the job is being closed
  std::function<void(wire::ControlMessage)> tell;  // to the chief
};

class JobRunner final : public ExchangeHandler {
 public:
  // The caller has checked the layout: it passed validate(), and describes the engine's model. Allocates and touches
  // all memory and opens the exchange.
  JobRunner(RunnerWorld world, PreparedJob& prepared, OpenJob job);
  ~JobRunner() override;

  // From the chief: Start, LeaseGranted, StopRequested, BecomesEvaluator, EvaluateRequested, ChiefAway, ChiefReturned.
  void feed(const Event& event);

  // A computation or an evaluation is due.
  bool has_work() const { return compute_.has_value() || evaluation_.has_value(); }
  void work();
  // Whether answers may come during a computation.
  bool overlaps() const { return core_.buffers() > 1; }

  JobId job() const { return job_.job; }
  Generation generation() const { return job_.generation; }

  void on_channel_opened(ShardId shard, Sequence last) override { feed(ChannelOpened{shard, last}); }
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
  std::span<float> landing() override { return parameters_[core_.landing()]->values(); }

 private:
  // Actions.
  void carry_out(const ReportOpened& action);
  void carry_out(const RequestLease& action);
  void carry_out(const RequestBatch& action);
  void carry_out(const DropBatch& action);
  void carry_out(const SendPull& action);
  void carry_out(const SendPush& action);
  void carry_out(const SendMark& action);
  void carry_out(const Compute& action);
  void carry_out(const RunEvaluation& action);
  void carry_out(const ReportEvaluated& action);
  void carry_out(const ReportFinished& action);
  void carry_out(const Accuse& action);
  void carry_out(const Fail& action);

  void feed_one(const Event& event);
  void supply_batches();
  void compute();
  void evaluate();
  Status use_buffers(std::uint32_t parameters, std::uint32_t gradients);
  void post_progress();
  // Metrics: counted once per step, published now and then.
  void count_step();
  void show_figures();
  void tick();

  // Constant after construction.
  const RunnerWorld world_;
  PreparedJob& prepared_;
  const OpenJob job_;
  std::vector<std::unique_ptr<FlatMemory>> parameters_;
  std::vector<std::unique_ptr<FlatMemory>> gradients_;
  RangeReady on_range_;

  // Owned by the step thread.
  WorkerCore core_;
  Actions actions_;
  Instant now_{};                                                   // of the event being handled
  Instant shown_{};                                                 // when world_.figures were last published
  Progress counted_;                                                // as of the last step counted in world_.figures
  WorkerFigures before_;                                            // of the job's earlier runners
  bool is_step_skipped_ = false;                                    // a shard skipped the step under way
  std::optional<Compute> compute_;                                  // due
  std::optional<RunEvaluation> evaluation_;                         // due
  std::optional<Error> broken_;                                     // found while actions were carried out
  std::optional<std::pair<std::uint32_t, std::uint32_t>> buffers_;  // that the engine has open
  std::unique_ptr<input::Prefetcher> input_;
  std::unique_ptr<input::ReadyBatch> batch_;  // taken for the next computation
  bool awaiting_batch_ = false;
  std::shared_ptr<bool> alive_;  // shared with callbacks that may outlive the runner
  asio::steady_timer ticker_;
  std::unique_ptr<Exchange> exchange_;  // last: it calls this
};

}  // namespace disttrain::workerd
