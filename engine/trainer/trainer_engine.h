// TrainerEngine: the engine of a job whose model.trainer is a program, the trainer. The trainer has the model and the
// user's own training loop. It computes in its own process, on parameters, gradients and batches in shared memory.
//
// The trainer may end, hang, or send anything. The engine turns each of these into one error, whose text ends with what
// the trainer printed last (see RunningTrainer), and kills what is left of it. The first call after that starts another
// one. Codes of the errors: kUnavailable: the trainer died or didn't answer, and another one may do better. kFailed: it
// failed by itself in an evaluation. kConfig: the trainer did something wrong, such as to end with exit code 0, and
// would do so again. kTemporary: is_cancelled() returned true.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/layout.h"
#include "common/os/arena.h"
#include "engine/engine.h"
#include "engine/trainer/running_trainer.h"
#include "engine/trainer/shared_columns.h"

namespace disttrain::workerd {

struct TrainerOptions {
  TrainerCommand command;
  // The columns of the job's [data]. Empty: the job has no [data], and the trainer reads a data set of its own.
  std::vector<ColumnSpec> columns;
  std::uint64_t batch_size = 0;  // the most records of a step
  std::uint64_t seed = 0;        // of the job
  Duration start_timeout{};      // from the start of the process to its `describe`
  // The longest computation of a step. It must be shorter than job.stall_timeout: a worker whose trainer hangs then
  // fails before the job does. An evaluation's batch may take kEvaluationPatience times as long (common/timeouts.h).
  Duration answer_timeout{};
  // For the lines of the script after its loop. Then the engine kills the trainer.
  Duration end_timeout = std::chrono::seconds(5);
};

// What the engine uses. The loop and the arena must outlive it. All functions are called on the engine's thread.
struct TrainerWorld {
  asio::io_context& loop;
  Arena& arena;  // shared; the arrays that open() gets are in it
  std::function<bool()> is_cancelled;
  TrainerProcess::OnLine on_line;               // what the trainer prints
  std::function<void()> on_checkpoint;          // the trainer asks for a checkpoint
  std::function<std::uint32_t()> worker_count;  // the number of workers that take part in the job now
};

class TrainerEngine final : public Engine {
 public:
  // Starts the trainer, and waits until it has described its model. Blocks, and calls is_cancelled() several times a
  // second.
  static Result<std::unique_ptr<TrainerEngine>> make(TrainerOptions options, TrainerWorld world);
  // Ends the trainer. This takes some seconds if the trainer doesn't end by itself.
  ~TrainerEngine() override;

  // The model and the sizes of the trainer's own data sets.
  const TrainerModel& model() const { return model_; }

  bool clears_gradients_ahead() const override { return model_.clears_ahead; }
  const ModelSpec& describe() const override { return spec_; }
  Status takes(Program, std::uint64_t) const override { return {}; }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override;
  // Blocks until the trainer has answered, and uses the array of gradients.
  Result<std::vector<float>> initial_values() override;
  void start(const EngineInput& input, EngineSink& sink) override;
  void abort() override;

 private:
  TrainerEngine(TrainerOptions options, TrainerWorld world);

  Status start_trainer();
  Status start_once();
  Result<TrainerModel> handshake();
  // Makes sure that a trainer runs that knows the layout.
  Status ensure_running();
  Status tell_layout();
  // Sends a message together with the blocks that it names, unless this trainer has them already.
  Status send(nlohmann::json message, std::span<const Arena::Place> places);
  Error drop_trainer(const Error& why);

  // How long the computation under way may take.
  Duration limit() const;
  Status send_start(const EngineInput& input);
  void finish_empty(const EngineInput& input);
  void on_event();
  void handle(TrainerMessage& message);
  void handle_ready(const TrainerReady& ready);
  void handle_finished(TrainerFinished& finished);
  void fail_computation(const Error& why);
  // Announces the gradients up to `end`. False if the computation has failed meanwhile, because the sink ran the loop.
  bool announce(std::uint64_t end);
  // Ends the computation under way.
  void call_finished(const Result<EngineOutput>& output);
  void watch_the_clock();
  // Whether an aborted computation may send this message before its end.
  bool may_precede_the_end(const TrainerMessage& message);
  Error refuse_unasked(const TrainerMessage& message);

  const TrainerOptions options_;
  const TrainerWorld world_;
  TrainerModel model_;
  ModelSpec spec_;
  bool is_described_ = false;
  bool was_killed_ = false;  // a signal ended the last trainer

  std::unique_ptr<RunningTrainer> trainer_;
  std::set<std::uint64_t> known_blocks_;  // of the arena; this trainer has them
  std::optional<Error> unreported_;       // the trainer failed between two computations

  Layout layout_;
  bool is_open_ = false;
  std::span<float> parameters_;
  std::span<float> gradients_;
  SharedColumns columns_;

  // The computation under way.
  std::uint64_t number_ = 0;
  std::uint32_t checkpoints_ = 0;  // that the trainer has asked for since this computation began
  EngineSink* sink_ = nullptr;
  Program program_ = Program::kStep;
  std::uint64_t examples_ = 0;
  std::uint64_t ready_ = 0;  // the gradients before this element are announced
  std::vector<double> metrics_;
  std::vector<float> outputs_;
  bool is_handling_ = false;  // a message is being handled; the sink may run the loop
  bool is_calling_sink_ = false;
  asio::steady_timer clock_;
  std::shared_ptr<bool> alive_;  // shared with the clock's handlers, which may outlive the engine
};

}  // namespace disttrain::workerd
