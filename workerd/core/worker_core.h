// WorkerCore: the state machine of one worker for one job. It begins when the shell opens the channels and ends with
// the last report to the chief. It gets events and returns actions, which the shell carries out in order. It does no
// I/O and reads no clock.
//
// The life of a step:
// 1. A batch is ready. The core returns Compute.
// 2. During the computation the shell sends RangesReady events. For each of them the core returns SendPush for the
//    buckets whose gradients are final, as far as credits allow. If several wait for a credit, those go first that the
//    next step needs first.
// 3. The shell sends Computed. The core sends the remaining buckets. The last frame to each shard asks for parameters.
//    In async with several buckets per shard, each frame asks for the parameters of its own bucket.
// 4. When all answers have arrived, the next step begins. With pipeline = 1 the next step is computed while the answers
//    arrive; the answers go to a second parameter buffer. If the engine can begin early (JobFacts::begins_early), the
//    next step begins in async while the answers arrive, and the engine waits for those that it needs. Nothing is older
//    for it: every parameter is that of the answer.
//
// Between Compute and Computed, and during an evaluation, the core may get any event.
//
// The core decides what follows, and in which order. What it knows lies in parts: Channels, BatchQueue, HeldParameters,
// FirstValues, Evaluations and PhaseClock. check() has the rules about how they fit together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workerd/core/batch_queue.h"
#include "workerd/core/channels.h"
#include "workerd/core/evaluations.h"
#include "workerd/core/events.h"
#include "workerd/core/first_values.h"
#include "workerd/core/held_parameters.h"
#include "workerd/core/phase_clock.h"

namespace disttrain::workerd {

class WorkerCore {
 public:
  // facts.layout must have passed validate(), and facts.credits must be at least 1. If facts.self isn't in
  // facts.roster, the worker's rank is 0.
  WorkerCore(JobFacts facts, Instant now);

  // Handles one event and appends the actions to `out`. Ignores an event that doesn't fit the core's state.
  void step(Instant now, const Event& event, Actions& out);

  // The index of the parameter buffer into which the shell must receive answers now. Always 0 without pipeline = 1.
  std::uint32_t landing() const { return parameters_.landing(); }
  // The number of parameter buffers, and of gradient buffers, that the shell must have.
  std::uint32_t buffers() const { return pipeline_ ? 2 : 1; }
  // Whether Compute may come while answers to the last push are under way. Doesn't change.
  bool begins_early() const { return begins_early_; }
  // The batch that the core waits for, if it waits for one. The shell sends BatchReady as soon as this batch is ready.
  std::optional<BatchTicket> batch_wanted() const;
  const Progress& progress() const { return phases_.progress(); }
  // Whether frames are under way that a shard will answer.
  bool awaits_answers() const;

 private:
  // The worker's part in the job. It only goes on.
  enum class Life {
    kOpening,   // some channels weren't open yet
    kOpened,    // ReportOpened was returned
    kTraining,  // Start came
    kLeft       // ReportFinished was returned
  };
  // The gradient of one batch. It exists from the start of its computation until its push is complete.
  struct Gradient {
    BatchOrder order;
    std::uint64_t clock = 0;
    std::uint32_t buffer = 0;
    RosterVersion roster;
    std::vector<Step> pull_versions;  // for each shard, the version of its parameters that the engine used
    float loss = 0.0F;
    bool final = false;
  };
  // The gradient buffer that holds the initial values. No gradient uses it before they are sent and taken.
  static constexpr std::uint32_t kValuesBuffer = 0;

  enum class Computation {
    kNone,
    kUnderWay,  // the engine is computing computed_
    kWhole      // computed_ is complete, but its push hasn't begun
  };
  enum class Pushing {
    kNothing,
    kGradient,  // pushed_
    kFarewell   // ssp: an empty push; after it no other worker waits for this one
  };
  // kAll pulls from all shards. kLagging pulls only from the shards whose parameters are older than another shard's.
  // kWork is for ssp: it pulls from all shards and tells them that other workers must wait for this one from now on.
  enum class PullOf { kAll, kLagging, kWork };

  // Events.
  void on(const ChannelOpened& event, Actions& out);
  void on(const ChannelLost& event, Actions& out);
  void on(const PsUnreachable& event, Actions& out);
  void on(const PsReached& event, Actions& out);
  void on(const Start& event, Actions& out);
  void on(const LeaseGranted& event, Actions& out);
  void on(const ChiefAway& event, Actions& out);
  void on(const ChiefReturned& event, Actions& out);
  void on(const BatchReady& event, Actions& out);
  void on(const RangesReady& event, Actions& out);
  void on(const Computed& event, Actions& out);
  void on(const ParametersArrived& event, Actions& out);
  void on(const AcknowledgeArrived& event, Actions& out);
  void on(const ValuesLoaded& event, Actions& out);
  void on(const MarkRequested& event, Actions& out);
  void on(const MarkTakenArrived& event, Actions& out);
  void on(const Paused& event, Actions& out);
  void on(const StopRequested& event, Actions& out);
  void on(const BecomesEvaluator& event, Actions& out);
  void on(const EvaluateRequested& event, Actions& out);
  void on(const EvaluationDone& event, Actions& out);
  void on(const Broken& event, Actions& out);
  void on(const Tick& event, Actions& out);

  // Does everything that can be done without waiting.
  void advance(Actions& out);
  void settle_answers(Actions& out);
  void take_parameters(Actions& out);
  void follow_roster(bool is_first, Actions& out);
  void plan_batches(Actions& out);
  void drop_stale_batches(Actions& out);
  void begin_compute(Actions& out);
  void drop_compute(Actions& out);
  void begin_push(Actions& out);
  void add_ready_frames(std::uint64_t ready_end, Actions& out);
  void add_last_frames(Actions& out);
  void begin_pull(PullOf what, Actions& out);
  void send_values(Actions& out);
  void begin_work(Actions& out);
  bool averages() const { return facts_.config.evaluate.average > 0.0; }
  bool pulls_averages() const { return evaluations_.pulls() && averages(); }
  void begin_evaluation(Actions& out);
  void run_evaluation(Actions& out);
  void say_farewell(Actions& out);
  void place_marks(Actions& out);
  void leave(Actions& out);

  // Checks what every transition leaves.
  void check() const;

  // Questions.
  bool is_computing() const { return computation_ == Computation::kUnderWay; }
  bool is_whole() const { return computation_ == Computation::kWhole; }
  bool is_pushing() const { return pushing_ != Pushing::kNothing; }
  bool has_left() const { return life_ == Life::kLeft; }
  bool leases() const { return facts_.config.data.sharding == Sharding::kLease; }
  bool sync() const { return facts_.config.train.mode == Mode::kSync; }
  bool ssp() const { return facts_.config.train.mode == Mode::kSsp; }
  bool early() const;
  bool may_begin_early() const;
  // Whether the computation under way began before all answers to the last push were there.
  bool awaits_parameters() const { return begins_early_ && is_computing() && is_pushing(); }
  std::uint64_t next_clock() const;
  bool holds_answer_back() const;
  bool is_void(const Gradient& gradient) const;
  Push frame_of(const Gradient& gradient, const Channel& channel, bool last) const;
  std::string waited_for() const;
  bool waits_for_others() const;
  int patience() const;

  void enter(Phase phase) { phases_.enter(phase, now_); }
  void set_broken(Error error, Actions& out);

  // Constant after construction.
  const JobFacts facts_;
  const bool pipeline_;
  const bool begins_early_;
  Rank rank_;

  Instant now_;
  Instant moved_;   // time of the last event that shows progress; job.stall_timeout counts from here
  Instant ticked_;  // time of the last tick
  Instant started_at_;

  // What the worker has. Each part is consistent by itself.
  PhaseClock phases_;
  Channels channels_;
  BatchQueue queue_;
  HeldParameters parameters_;
  FirstValues values_;
  Evaluations evaluations_;

  // Life.
  Life life_ = Life::kOpening;
  std::optional<Error> broken_;  // Fail was returned
  bool is_paused_ = false;
  bool is_chief_away_ = false;
  bool is_stopping_ = false;  // StopRequested came
  bool is_finished_ = false;  // a shard said that the job has done all its steps
  bool is_at_work_ = false;   // ssp: workers that are too far ahead wait for this one; false after its final push

  // The step.
  Computation computation_ = Computation::kNone;
  Gradient computed_;
  Pushing pushing_ = Pushing::kNothing;
  Gradient pushed_;
  bool is_pulling_ = false;
  bool has_looked_ahead_ = false;  // pulled to learn the job's step; the next such pull is sent after the next tick
  std::uint64_t last_pull_id_ = 0;
  std::uint64_t clock_ = 0;     // async, ssp: the number of this worker's newest step
  RosterVersion roster_;        // the roster in force when the shards sent the newest complete parameters
  RosterVersion pacer_roster_;  // the roster in the pacer's newest answer

  std::optional<std::uint64_t> mark_wanted_;  // the checkpoint attempt whose marks are still to be sent
  std::uint64_t newest_mark_ = 0;             // the newest checkpoint attempt for which the chief asked for marks
};

}  // namespace disttrain::workerd
