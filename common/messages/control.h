// Between the chief and the tasks, over the control connection that each task opens. Order of a job's life:
//
//   chief -> one worker   DescribeJob          -> JobDescribed | TaskFailed
//   chief -> every ps     CreateShards         -> ShardsCreated | TaskFailed
//   chief -> every worker OpenJob              -> JobOpened | TaskFailed
//   chief -> pacer's ps   SetRoster            -> RosterApplied
//   chief -> every worker StartJob
//   worker -> chief       LeaseRequest         -> LeaseGrant ... with last = true on the last of the job
//   worker -> chief       WorkerFinished       (each, at a push boundary: end of data or steps, or StopJob)
//   chief -> one worker   Evaluate             -> Evaluated
//   chief -> every worker PauseJob             (while a ps is away, or workers are too few)
//   chief -> all          CloseJob             -> JobClosed
//   any task -> chief     LeaveRequest         -> LeaveGranted (it was told to end)
//
// Every message names the job and its generation; another generation than the receiver's is ignored and counted (I3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/interval.h"
#include "common/layout.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain {

// The workers of a job in rank order.
struct Roster {
  RosterVersion version;
  std::vector<Member> members;
  bool operator==(const Roster&) const = default;
};

// Who owns a shard and where it is reached.
struct Owner {
  Member ps;
  std::string address;
  bool operator==(const Owner&) const = default;
};

// `config`, here and below: the job's settings as the chief read and resolved them; no other task reads job.toml.
//
// A worker reads the data's shape and builds the model once, to tell what the job needs. Any problem of the data or of
// the model with the data is found here and comes back as TaskFailed. Then it dials each ps of `reach`: only a worker
// that reaches all of them may take part.
struct DescribeJob {
  JobId job;
  SharedJobConfig config = std::make_shared<const JobConfig>();
  std::vector<Owner> reach{};
};

struct JobDescribed {
  JobId job;
  ModelSpec model;
  std::uint64_t train_records = 0;       // after data.records
  std::uint64_t evaluation_records = 0;  // 0 without [evaluate]
  std::vector<Member> unreachable{};     // of DescribeJob::reach

  bool operator==(const JobDescribed&) const = default;
};

struct CreateShards {
  JobId job;
  Generation generation;
  std::uint64_t token = 0;  // channels and shard peers show it
  SharedJobConfig config = std::make_shared<const JobConfig>();
  Layout layout;
  std::vector<Owner> owners;          // of each shard in turn; the receiver makes those whose ps is itself
  Roster roster;                      // expected workers: memory is made for them
  std::uint64_t warmup_steps = 0;     // PacerReport::training is counted from this global step on
  std::uint64_t train_records = 0;    // length of an epoch, for the ledger
  std::uint32_t places = 0;           // workers that memory is made for, at least the roster's
  std::string checkpoint_folder;      // the job's; "": it takes none
  std::uint64_t checkpoint_mark = 0;  // the number that is in that folder, if it is the one that the chief sees
  std::string restore_path;           // a checkpoint; "": initial values
  std::string init_path;              // then: where their parameters are read; "": they are drawn
};

struct ShardsCreated {
  JobId job;
  Generation generation;
};

struct OpenJob {
  JobId job;
  Generation generation;
  std::uint64_t token = 0;
  SharedJobConfig config = std::make_shared<const JobConfig>();
  Layout layout;
  std::vector<Owner> owners;
  Roster roster;
  std::uint64_t train_records = 0;
  bool evaluates = false;  // this worker does the evaluations of mid-run
  Step clock;              // steps of its own that the worker has done before, in an earlier generation
};

struct JobOpened {
  JobId job;
  Generation generation;
};

struct StartJob {
  JobId job;
  Generation generation;
};

// Workers stop at their next step, or go on. A pause isn't a stall.
struct PauseJob {
  JobId job;
  Generation generation;
  bool paused = false;
  std::string reason;
};

// Workers join or leave. The pacer passes it on to all shards in the stream of its commits, so that all change at the
// same step, and tells the chief at which.
struct SetRoster {
  JobId job;
  Generation generation;
  Roster roster;
};

// No frame of this incarnation changes state after the answer. Sent to every ps; each shard answers.
struct FenceWorker {
  JobId job;
  Generation generation;
  Member worker;
};

struct WorkerFenced {
  JobId job;
  Generation generation;
  ShardId shard;
  Member worker;
  Sequence last_sequence;  // last frame applied or staged
  Step last_clock;         // worker's step of the last whole push taken, 0 = none
};

// A worker asks before it runs dry. At most one request is outstanding.
struct LeaseRequest {
  JobId job;
  Generation generation;
  double records_per_second = 0.0;  // measured, 0 = unknown
};

// Records lent to one worker (async, ssp), or the same block of steps lent to a whole roster (sync).
//
// async, ssp: `positions` are the worker's own, taken in order, `batch_size` at a time; a batch doesn't cross leases.
// sync: item i of the concatenated `positions`; in step first_step + n, rank r takes the items
// [(n * ranks + r) * batch_size, + batch_size), fewer or none at the end (a push of 0 examples).
struct Lease {
  LeaseId id;
  std::uint32_t epoch = 0;
  std::vector<Interval> positions;
  Step first_step;          // sync
  std::uint64_t steps = 0;  // sync
  std::uint32_t ranks = 0;  // sync: members of the roster it is for
  RosterVersion roster;     // sync: void under any other roster
  Rank rank;                // sync: the receiver's place in that roster
  bool operator==(const Lease&) const = default;
};

struct LeaseGrant {
  JobId job;
  Generation generation;
  std::optional<Lease> lease;  // none: with last, there is nothing left for this worker
  bool last = false;           // nothing follows: when its leases are used up, the worker is finished
  RosterVersion roster{};      // sync: `last` is said for this one
};

// sharding = "none" needs no lease: worker with rank r goes through the whole set `epochs` times in its own order.

// The worker has no more to do and all its pushes are answered.
struct WorkerFinished {
  JobId job;
  Generation generation;
  std::uint64_t steps = 0;
};

// Workers stop at the next push boundary and say WorkerFinished.
struct StopJob {
  JobId job;
  Generation generation;
};

// The worker now does the evaluations of mid-run (its predecessor was lost).
struct SetEvaluator {
  JobId job;
  Generation generation;
};

// The final evaluation: a plain pull, then the whole test set.
struct Evaluate {
  JobId job;
  Generation generation;
};

struct Evaluated {
  JobId job;
  Generation generation;
  Step step;  // the pacer's version of the parameters
  bool final = false;
  double loss = 0.0;
  std::optional<double> accuracy;  // none where labels are values
  std::uint64_t examples = 0;
  Duration took{};
  bool stalled_training = false;      // sync: all waited for it; left out of `seconds`
  std::uint64_t parameters_hash = 0;  // XXH3 of the parameters, variable by variable in the model's order
};

// Everything of the job is released. A task that doesn't know the job answers all the same.
struct CloseJob {
  JobId job;
  Generation generation;
  std::string reason;
  bool removed = false;  // the job goes on without this worker: it may come back as another incarnation
};

struct JobClosed {
  JobId job;
};

// The job can't go on at this task; the task itself is well.
struct TaskFailed {
  JobId job;
  Generation generation;  // 0: it couldn't do what DescribeJob asks for
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

// "I can't reach it": makes the chief probe at once. Repeated while the link is away: from Timeouts::unreachable on the
// chief decides which of the two goes on without the other.
struct Accusation {
  JobId job;
  Generation generation;
  TaskId accused;
  std::string reason;
  Duration lasts{};        // since the accused was heard last
  bool withdrawn = false;  // the link is back
};

enum class Phase : std::uint8_t { kIdle, kInput, kPull, kCompute, kPush, kWait, kEvaluate };
inline constexpr int kPhases = 7;
const char* to_string(Phase phase);

// Time spent in each phase since the job's start (or since warm-up), by index of Phase.
using PhaseTimes = std::vector<Duration>;

// Visited positions of an epoch that isn't complete yet. Epochs before the first entry are complete; those after the
// last are untouched.
struct EpochLedger {
  std::uint32_t epoch = 0;
  std::vector<Interval> visited;  // ascending, disjoint, not touching
};

// What only the pacer knows of a job.
struct PacerReport {
  Step global_step;
  std::uint64_t examples = 0;           // applied
  Duration training{};                  // from the first applied step (or the last of warm-up) to the last
  std::uint64_t measured_steps = 0;     // steps within `training`
  std::uint64_t measured_examples = 0;  // examples within `training`
  double loss = 0.0;                    // mean over the last steps, NaN before the first
  std::uint64_t late = 0;               // sync: gradients dropped because their step was committed without them
  std::uint64_t skipped = 0;            // steps not applied because of a non-finite loss or gradient
  std::uint32_t skipped_in_row = 0;
  std::uint32_t complete_epochs = 0;
  std::vector<EpochLedger> ledger;
  bool finished = false;       // train.steps is reached
  double staleness = 0.0;      // steps between a gradient's pull and its use; mean over the last steps
  Step slowest_clock;          // ssp: of the workers at work; who joins begins there
  double learning_rate = 0.0;  // of the next update, with the schedule and the roster in force; 0: none is told yet
};

// pacer -> chief, answers SetRoster.
struct RosterApplied {
  JobId job;
  Generation generation;
  RosterVersion version;
  Step step;          // the roster holds from step + 1 on
  PacerReport pacer;  // as of that step: its ledger is what new leases are cut from
};

// How much a shard has had to do since it was made: what it says of two moments tells how busy it was between them.
struct ShardLoad {
  ShardId shard;
  Duration lived{};     // since it was made
  Duration busy{};      // processor time of its thread since then; shards of one thread share it
  Duration applying{};  // on the clock, in summing and applying gradients
  bool operator==(const ShardLoad&) const = default;
};

// Both clocks: that it comes says the task lives, what it says shows whether it progresses.
struct Heartbeat {
  JobId job;  // 0 = idle
  Generation generation;
  Phase phase = Phase::kIdle;
  Duration in_phase{};
  std::uint64_t steps = 0;  // worker: its own
  std::uint64_t examples = 0;
  double loss = 0.0;
  PhaseTimes phase_times;            // worker
  std::vector<std::uint64_t> turns;  // ps: turn counter of each shard thread; one that stands still isn't alive
  std::optional<PacerReport> pacer;  // ps that owns shard 0; also sent at once when an epoch is complete or finished
  std::vector<ShardLoad> shards;     // ps: of those that it holds and has heard from
  // Pieces of long work done for this job and generation: bytes restored, data read, files written. Only its growth
  // means anything: work that grows extends the chief's deadline for it, work that stands still times out.
  std::uint64_t work = 0;
};

struct HeartbeatAnswer {
  Term term;
  Duration heartbeat_timeout{};  // the chief's, which holds for all; it may change
};

// The task was told to end, and waits for LeaveGranted, though not for ever: a worker stops at its next push boundary
// and its records are lent again; of a ps's shards a checkpoint is taken where the job takes any, and nothing is
// applied after it. Said again to each chief.
struct LeaveRequest {};

// Nothing hangs on the task any more.
struct LeaveGranted {};

struct LogLine {
  std::int64_t wall_nanoseconds = 0;  // Unix time
  TaskId task;
  std::uint8_t level = 2;  // 0 debug, 1 info, 2 warn, 3 error
  std::string text;
};

struct LogLines {
  std::vector<LogLine> lines;
  std::uint64_t dropped = 0;  // lines that the rate limit left out before these
};

}  // namespace disttrain
