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
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fifo.h"
#include "workerd/core/batch_plan.h"
#include "workerd/core/channel.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// A worker's progress, for heartbeats.
struct Progress {
  Phase phase = Phase::kIdle;
  Instant since{};  // time at which the phase began
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  double loss = 0.0;  // loss of the newest step; NaN before the first step
  std::array<Duration, kPhases> times{};
};

class WorkerCore {
 public:
  // facts.layout must have passed validate(), and facts.credits must be at least 1. If facts.self isn't in
  // facts.roster, the worker's rank is 0.
  WorkerCore(JobFacts facts, Instant now);

  // Handles one event and appends the actions to `out`. Ignores an event that doesn't fit the core's state.
  void step(Instant now, const Event& event, Actions& out);

  // The index of the parameter buffer into which the shell must receive answers now. Always 0 without pipeline = 1.
  std::uint32_t landing() const { return pipeline_ ? 1 - fresh_ : 0; }
  // The number of parameter buffers, and of gradient buffers, that the shell must have.
  std::uint32_t buffers() const { return pipeline_ ? 2 : 1; }
  // Whether Compute may come while answers to the last push are under way. Doesn't change.
  bool begins_early() const { return begins_early_; }
  // The batch that the core waits for, if it waits for one. The shell sends BatchReady as soon as this batch is ready.
  std::optional<BatchTicket> batch_wanted() const;
  const Progress& progress() const { return progress_; }
  // Whether frames are under way that a shard will answer.
  bool awaits_answers() const;

 private:
  struct Planned {
    BatchOrder order;
    bool ready = false;
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
  // The gradient buffer that holds the initial values. No gradient uses it before the worker has parameters.
  static constexpr std::uint32_t kValuesBuffer = 0;

  // kAll pulls from all shards. kLagging pulls only from the shards whose parameters are older than another shard's.
  // kWork is for ssp: it pulls from all shards and tells them that other workers must wait for this one from now on.
  enum class PullOf { kAll, kLagging, kWork };
  enum class Evaluation { kNone, kPull, kRun };

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
  void follow_roster(Actions& out);
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
  bool pulls_averages() const { return evaluation_ == Evaluation::kPull && averages(); }
  bool evaluation_due();
  void begin_evaluation(Actions& out);
  void run_evaluation(Actions& out);
  void say_farewell(Actions& out);
  void place_marks(Actions& out);
  void leave(Actions& out);

  // Questions.
  bool leases() const { return facts_.config.data.sharding == Sharding::kLease; }
  bool sync() const { return facts_.config.train.mode == Mode::kSync; }
  bool ssp() const { return facts_.config.train.mode == Mode::kSsp; }
  bool early() const;
  bool may_begin_early() const;
  // Whether the computation under way began before all answers to the last push were there.
  bool awaits_parameters() const { return begins_early_ && computing_ && pushing_; }
  bool data_used_up() const;
  std::uint64_t next_clock() const;
  bool holds_answer_back() const;
  // True if the job may have reached a step or a roster that this worker doesn't know. It then pulls to learn them.
  bool must_look_ahead() const;
  // Whether a frame was added to a channel's newest push.
  bool has_frames() const;
  bool pushes_complete() const;
  bool pushes_sent() const;
  bool pulls_complete() const;
  bool is_void(const Gradient& gradient) const;
  Push frame_of(const Gradient& gradient, const Channel& channel, bool last) const;
  std::string waited_for() const;
  bool waits_for_others() const;
  int patience() const;

  void enter(Phase phase);
  void enter_compute();
  // The computation under way, which began early, has all its parameters now.
  void note_all_parameters();
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
  Progress progress_;
  std::vector<Channel> channels_;  // by shard

  // Data.
  BatchPlan plan_;
  Fifo<Planned> planned_;  // batches that were requested but not yet computed, in the order of their computation
  BatchTicket last_ticket_;
  bool lease_requested_ = false;
  bool lease_refused_ = false;  // the last grant contained nothing new; the next request is sent after the next tick
  bool looked_ahead_ = false;   // pulled to learn the job's step; the next such pull is sent after the next tick

  // Life.
  bool opened_ = false;
  bool started_ = false;
  bool paused_ = false;
  bool is_chief_away_ = false;
  bool stopping_ = false;        // StopRequested came
  bool finished_ = false;        // a shard said that the job has done all its steps
  bool left_ = false;            // ReportFinished was returned
  std::optional<Error> broken_;  // Fail was returned
  bool at_work_ = false;         // ssp: workers that are too far ahead wait for this one; false after its final push

  // The step.
  bool pulling_ = false;         // a pull is under way
  bool pushing_ = false;         // a push is under way: of pushed_, or an empty push if farewell_ is true
  bool farewell_ = false;        // ssp: the push under way is empty; after it no other worker waits for this one
  bool computing_ = false;       // the engine is computing computed_
  Duration overlapped_{};        // how long the computation ran before all parameters were there
  bool computed_whole_ = false;  // computed_ is complete, but its push hasn't begun
  Gradient computed_;
  Gradient pushed_;
  // The model's initial values are in a gradient buffer: kLoading until ValuesLoaded, then kLoaded.
  enum class Values { kNone, kLoading, kLoaded };
  Values values_ = Values::kNone;
  std::vector<ShardId> values_wanted_;  // the shards that asked for them and haven't got them
  bool have_parameters_ = false;
  // The buffer of parameters has the averages that an evaluation has used. They must not be used to compute a step.
  bool have_averages_ = false;
  std::uint32_t fresh_ = 0;           // index of the parameter buffer with the newest complete parameters
  std::vector<Step> fresh_versions_;  // for each shard, the version of its parameters in that buffer
  std::uint64_t clock_ = 0;           // async, ssp: the number of this worker's newest step
  std::uint64_t last_pull_id_ = 0;
  bool roster_known_ = false;
  RosterVersion roster_;        // the roster in force when the shards sent the newest complete parameters
  RosterVersion pacer_roster_;  // the roster in the pacer's newest answer

  std::optional<std::uint64_t> mark_wanted_;  // the checkpoint attempt whose marks are still to be sent
  std::uint64_t newest_mark_ = 0;             // the newest checkpoint attempt for which the chief asked for marks

  // Evaluation.
  bool evaluates_ = false;
  bool final_wanted_ = false;
  bool final_now_ = false;
  std::optional<Evaluated> final_;  // result of the final evaluation
  Evaluation evaluation_ = Evaluation::kNone;
  // The newest version that was evaluated, divided by evaluate.every_steps and rounded down. Before the first
  // evaluation, the version at which this worker became the evaluator is used instead.
  std::optional<std::uint64_t> evaluated_;
  Instant evaluation_began_;
};

}  // namespace disttrain::workerd
