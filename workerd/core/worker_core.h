// WorkerCore: one worker's part of one job, from opened channels to the last report: the worker's rules in
// docs/protocol.md. It is stepped with events and returns actions, to be carried out in order. No I/O, no clock.
//
// The life of a step:
// 1. A batch is ready: Compute.
// 2. RangesReady: buckets leave early, as far as credits allow.
// 3. Computed: the rest leaves; the last frame to each shard asks for the parameters.
// 4. All answers are here: the next step begins. With pipeline = 1 the answers of step n land in the other parameter
//    buffer while step n + 1 is computed.
//
// The shell computes inline: between Compute and Computed it gives the core only RangesReady, and with pipeline = 1
// also answers.
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
  Instant since{};  // when the phase began
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  double loss = 0.0;  // of the newest step, NaN before the first
  std::array<Duration, kPhases> times{};
};

class WorkerCore {
 public:
  // Requires that the layout passed validate() and that credits >= 1. If facts.self isn't in the roster, its rank is 0.
  WorkerCore(JobFacts facts, Instant now);

  // Appends to `out`. Ignores events that don't fit the state.
  void step(Instant now, const Event& event, Actions& out);

  // Parameter buffer into which answers land now; 0 unless pipeline = 1.
  std::uint32_t landing() const { return pipeline_ ? 1 - fresh_ : 0; }
  // Number of buffers that the shell must have.
  std::uint32_t buffers() const { return pipeline_ ? 2 : 1; }
  // The batch that the core waits for: send BatchReady as soon as it is there.
  std::optional<BatchTicket> batch_wanted() const;
  const Progress& progress() const { return progress_; }

 private:
  struct Planned {
    BatchOrder order;
    bool ready = false;
  };
  // A gradient from the start of its computation until its push is complete.
  struct Gradient {
    BatchOrder order;
    std::uint64_t clock = 0;
    std::uint32_t buffer = 0;
    RosterVersion roster;
    std::vector<Step> pull_versions;  // by shard: the versions that it was computed from
    float loss = 0.0F;
    bool final = false;
  };
  enum class PullOf { kAll, kLagging, kWork };  // all parameters; those of shards that lag; all, before work begins
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
  void on(const MarkRequested& event, Actions& out);
  void on(const MarkTakenArrived& event, Actions& out);
  void on(const Paused& event, Actions& out);
  void on(const StopRequested& event, Actions& out);
  void on(const BecomesEvaluator& event, Actions& out);
  void on(const EvaluateRequested& event, Actions& out);
  void on(const EvaluationDone& event, Actions& out);
  void on(const Broken& event, Actions& out);
  void on(const Tick& event, Actions& out);

  // Does all that can be done now.
  void advance(Actions& out);
  void settle_answers(Actions& out);
  void take_parameters(Actions& out);
  void follow_roster(Actions& out);
  void plan_batches(Actions& out);
  void drop_stale_batches(Actions& out);
  void begin_compute(Actions& out);
  void begin_push(Actions& out);
  void add_ready_frames(std::uint64_t ready_end, Actions& out);
  void add_last_frames(Actions& out);
  void begin_pull(PullOf what, Actions& out);
  void begin_work(Actions& out);
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
  bool data_used_up() const;
  std::uint64_t next_clock() const;
  bool holds_answer_back() const;
  // The others may be at a step, or have a roster, that this worker doesn't know.
  bool must_look_ahead() const;
  bool pushes_complete() const;
  bool pushes_sent() const;
  bool pulls_complete() const;
  bool is_void(const Gradient& gradient) const;
  Push frame_of(const Gradient& gradient, const Channel& channel, bool last) const;
  std::string waited_for() const;
  bool waits_for_others() const;
  int patience() const;

  void enter(Phase phase);
  void set_broken(Error error, Actions& out);

  // Constant after construction.
  const JobFacts facts_;
  const bool pipeline_;
  Rank rank_;

  Instant now_;
  Instant moved_;   // time of the last event that shows progress
  Instant ticked_;  // of the last tick
  Instant started_at_;
  Progress progress_;
  std::vector<Channel> channels_;  // by shard

  // Data.
  BatchPlan plan_;
  Fifo<Planned> planned_;  // requested batches, in order of computation
  BatchTicket last_ticket_;
  bool lease_requested_ = false;
  bool lease_refused_ = false;  // the chief had nothing new: ask again at the next tick
  bool looked_ahead_ = false;   // looked for the step that the others are at: again at the next tick

  // Life.
  bool opened_ = false;
  bool started_ = false;
  bool paused_ = false;
  bool is_chief_away_ = false;
  bool stopping_ = false;        // StopRequested came
  bool finished_ = false;        // a shard says that the job has done all its steps
  bool left_ = false;            // ReportFinished was returned
  std::optional<Error> broken_;  // Fail was returned
  bool at_work_ = false;         // ssp: the others wait for this worker's pushes, until a final one

  // The step.
  bool pulling_ = false;
  bool pushing_ = false;         // the push of pushed_ is under way
  bool farewell_ = false;        // ... and that push is an empty one, not a step
  bool computing_ = false;       // computed_ is being computed
  bool computed_whole_ = false;  // computed_ waits for its push
  Gradient computed_;
  Gradient pushed_;
  bool have_parameters_ = false;
  std::uint32_t fresh_ = 0;           // parameter buffer with the newest complete parameters
  std::vector<Step> fresh_versions_;  // versions of those parameters, by shard
  std::uint64_t clock_ = 0;           // async, ssp: clock of the newest gradient begun
  std::uint64_t last_pull_id_ = 0;
  bool roster_known_ = false;
  RosterVersion roster_;        // roster of fresh_versions_
  RosterVersion pacer_roster_;  // in the pacer's newest answer

  std::optional<std::uint64_t> mark_wanted_;  // attempt
  std::uint64_t newest_mark_ = 0;             // the attempt that was requested last

  // Evaluation.
  bool evaluates_ = false;
  bool final_wanted_ = false;
  bool final_now_ = false;
  std::optional<Evaluated> final_;  // result of the final evaluation
  Evaluation evaluation_ = Evaluation::kNone;
  std::optional<std::uint64_t> evaluated_;  // multiples of every_steps passed so far; none before the first version
  Instant evaluation_began_;
};

}  // namespace disttrain::workerd
