// Messages between the chief and the tasks. Each task opens a control connection to the chief for them. Their order in
// a job's life is:
//
//   chief -> one worker   DescribeJob          -> JobDescribed | TaskFailed
//   chief -> every ps     CreateShards         -> ShardsCreated | TaskFailed
//   chief -> every worker OpenJob              -> JobOpened | TaskFailed
//   chief -> pacer's ps   SetRoster            -> RosterApplied
//   chief -> every worker StartJob
//   worker -> chief       LeaseRequest         -> LeaseGrant ... (`last` is true in the job's last one)
//   worker -> chief       WorkerFinished       (after its last push, or after StopJob)
//   worker -> chief       CheckpointRequest    (a user's own training loop asks for a checkpoint)
//   chief -> one worker   Evaluate             -> Evaluated
//   chief -> evaluators   EvaluateCheckpoint   -> Evaluated | EvaluationFailed  (each checkpoint, one at a time)
//   chief -> every worker PauseJob             (while a ps is away, or workers are too few)
//   chief -> all          CloseJob             -> JobClosed
//   any task -> chief     LeaveRequest         -> LeaveGranted (the task was told to end)
//
// Every message about a job names the job and its generation. A receiver ignores and counts messages of a generation
// that isn't its own (I3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/interval.h"
#include "common/layout.h"
#include "common/model_metric.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain {

// The workers of a job in rank order.
struct Roster {
  RosterVersion version;
  std::vector<Member> members;
  bool operator==(const Roster&) const = default;
};

// The process that owns a shard, and its address.
struct Owner {
  Member ps;
  std::string address;
  bool operator==(const Owner&) const = default;
};

// In this message and in all others, `config` has the job's settings with all defaults filled in by the chief. Only the
// chief reads job.toml.
//
// The chief sends this message to learn what the job needs. The worker reads the shape of the data and builds the model
// once. If the data is unusable or doesn't fit the model, the worker answers with TaskFailed. The worker also connects
// to each ps in `reach`. A worker may join the job only if it reaches all of them.
struct DescribeJob {
  JobId job;
  SharedJobConfig config = std::make_shared<const JobConfig>();
  std::vector<Owner> reach{};
};

struct JobDescribed {
  JobId job;
  ModelSpec model;
  std::uint64_t train_records = 0;       // number of records for training, after data.records is applied
  std::uint64_t train_hash = 0;          // of these records (Dataset::hash()); 0: not known
  std::uint64_t evaluation_records = 0;  // 0 without [evaluate]
  std::vector<Member> unreachable{};     // the owners in DescribeJob::reach that the worker can't reach
  // What [data.columns] took from the training set (common/checkpoint/kept_columns.h), or the labels and the header of
  // csv files without it (common/checkpoint/kept_csv.h). At most kMaxKeptColumnsBytes. "": nothing, or too much
  std::string columns{};
  std::string notice{};  // what the operator should know about the data; "": nothing

  bool operator==(const JobDescribed&) const = default;
};

struct CreateShards {
  JobId job;
  Generation generation;
  std::uint64_t token = 0;  // a secret of the job: workers and other shards must show it when they connect to a shard
  SharedJobConfig config = std::make_shared<const JobConfig>();
  Layout layout;
  std::vector<Owner> owners;        // the owner of each shard, in order; the receiver makes the shards that it owns
  Roster roster;                    // the workers that are expected
  std::uint64_t warmup_steps = 0;   // PacerReport::training begins after this global step
  std::uint64_t train_records = 0;  // number of records in an epoch
  std::uint32_t places = 0;  // number of workers for which the shards allocate memory; at least the size of `roster`
  std::string checkpoint_folder;  // the job's folder of checkpoints; "" = the job takes no checkpoints
  // the number that the chief wrote into that folder; a ps that doesn't find it there sees another folder
  std::uint64_t checkpoint_mark = 0;
  std::string restore_path;  // path of the checkpoint to restore; "" = see init_path
  std::string init_path;     // path of the initial parameters, if no checkpoint is restored; "" = draw them at random
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
  std::uint64_t train_hash = 0;
  bool evaluates = false;  // this worker does the evaluations during the training
  Step clock;              // start value of the worker's clock, which counts the worker's own steps
  // data.sharding = "none": how many batches of its own order the worker has done, in this generation's history.
  std::uint64_t batches = 0;
};

// The kinds of connections that a worker has to shards, as bits.
using Wires = std::uint8_t;
inline constexpr Wires kTcpWire = 1;
inline constexpr Wires kShmWire = 2;
inline constexpr Wires kRdmaWire = 4;

struct JobOpened {
  JobId job;
  Generation generation;
  Wires wires = 0;
};

struct StartJob {
  JobId job;
  Generation generation;
};

// Tells workers to pause at their next step, or to go on. While the job is paused, the chief reports no stall.
struct PauseJob {
  JobId job;
  Generation generation;
  bool paused = false;
  std::string reason;
};

// Workers have joined or left. The pacer tells all shards. In sync it does so in its stream of commits, so that all
// shards change the roster at the same step. Then it sends the number of this step to the chief.
struct SetRoster {
  JobId job;
  Generation generation;
  Roster roster;
  // sync: the job is being stopped, and all workers have finished. The pacer commits no step after this message, so
  // that the step in its answer is the job's last one. Without it, pushes that are still staged could make one more
  // step.
  bool ends = false;
};

// The chief sends this message to every ps, and each shard answers. After a shard has answered, no frame of this
// incarnation changes the shard's state.
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
  Sequence last_sequence;  // the last frame of the worker that the shard has applied or staged
  Step last_clock;         // the worker's own step (Push::clock) in its last complete push; 0 = none
};

// A worker asks for the next lease before it has used up its leases. It has at most one request without an answer.
struct LeaseRequest {
  JobId job;
  Generation generation;
  double records_per_second = 0.0;  // measured by the worker; 0 = unknown
};

// Records that the chief lends to workers.
//
// async, ssp: a lease is for one worker. The worker takes `positions` in order, N at a time, where N is
// TrainSection::step_records(). A batch has positions of one lease only.
//
// sync: a lease is a block of steps for all workers of a roster. All of them get the same `positions`. In step
// first_step + n, the worker with rank r takes N of these positions, from index (n * ranks + r) * N on. In the block's
// last step, fewer positions may be left for a worker, or none. A worker that gets none pushes 0 examples.
struct Lease {
  LeaseId id;
  std::uint32_t epoch = 0;
  std::vector<Interval> positions;
  Step first_step;          // sync
  std::uint64_t steps = 0;  // sync
  std::uint32_t ranks = 0;  // sync: number of workers in the roster
  RosterVersion roster;     // sync: the roster that the lease is for; under any other roster the lease is void
  Rank rank;                // sync: the receiver's rank in that roster
  bool operator==(const Lease&) const = default;
};

struct LeaseGrant {
  JobId job;
  Generation generation;
  std::optional<Lease> lease;  // none: the message only says that `last` is true
  bool last = false;           // no further lease follows; a worker that has used up its leases is finished
  RosterVersion roster{};      // sync: the roster for which `last` is true; a newer roster may get more leases
};

// With data.sharding = "none" there are no leases. Each worker goes through all records `epochs` times, in an order of
// its own that depends on its rank.

// The worker has nothing left to do, and the shards have answered all its pushes.
struct WorkerFinished {
  JobId job;
  Generation generation;
  std::uint64_t steps = 0;
};

// A worker's trainer asks for a checkpoint (job.checkpoint() in Python). The chief takes one as soon as it can.
struct CheckpointRequest {
  JobId job;
  Generation generation;
};

// Tells the workers to stop after their current push, and to answer with WorkerFinished.
struct StopJob {
  JobId job;
  Generation generation;
};

// From now on this worker does the evaluations during the training, because the worker that did them was lost.
struct SetEvaluator {
  JobId job;
  Generation generation;
};

// Asks for the final evaluation: the worker pulls the parameters once and evaluates them on all evaluation records.
struct Evaluate {
  JobId job;
  Generation generation;
};

// Orders an evaluator to evaluate a checkpoint. The evaluator works on one order at a time; a newer order replaces the
// current one. It answers with Evaluated or EvaluationFailed. If an order is repeated after Evaluated, the evaluator
// repeats this answer. After EvaluationFailed it tries again.
struct EvaluateCheckpoint {
  JobId job;
  Generation generation;  // of the checkpoint
  SharedJobConfig config = std::make_shared<const JobConfig>();
  std::string path;  // the checkpoint's folder
};

// The evaluator couldn't evaluate this checkpoint. kNoInput: the checkpoint is gone.
struct EvaluationFailed {
  JobId job;
  Generation generation;
  std::string path;
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

struct Evaluated {
  JobId job;
  Generation generation;
  Step step;  // the global step of the evaluated parameters (shard 0's version)
  bool final = false;
  double loss = 0.0;
  std::vector<MetricValue> metrics;  // of the model, in its order
  std::uint64_t examples = 0;
  Duration took{};
  // sync: all workers waited for this evaluation, so `seconds` in the job's status doesn't count its time
  bool stalled_training = false;
  std::uint64_t parameters_hash = 0;  // XXH3 of the parameters, variable after variable in the model's order
  std::string path{};                 // from an evaluator: the checkpoint; "" from a worker
  std::string notice{};               // what the operator should know about the evaluation set; "": nothing
};

// Tells a task to release everything of the job. A task that doesn't know the job answers too.
struct CloseJob {
  JobId job;
  Generation generation;
  std::string reason;
  bool removed = false;  // the job continues without this worker; the worker may come back as another incarnation
};

struct JobClosed {
  JobId job;
};

// This task can't go on with the job, but the task itself is healthy. After kUnavailable the job may go on without the
// task, and after a worker's kFailed too: its trainer has raised an exception in an evaluation.
struct TaskFailed {
  JobId job;
  Generation generation;  // 0: the task failed at DescribeJob
  ErrorCode code = ErrorCode::kFailed;
  std::string reason;
};

// A task says that it can't reach another task, the accused. The chief then probes the accused at once. The sender
// repeats the message while the link is broken. When the link has been broken for Timeouts::unreachable, the chief
// decides with which of the two tasks the job goes on.
struct Accusation {
  JobId job;
  Generation generation;
  TaskId accused;
  std::string reason;
  Duration lasts{};        // time since the sender last heard the accused
  bool withdrawn = false;  // true: the link works again
};

enum class Phase : std::uint8_t { kIdle, kInput, kPull, kCompute, kPush, kWait, kEvaluate };
inline constexpr int kPhases = 7;
const char* to_string(Phase phase);

// The time spent in each phase since the job's start (or since its warm-up). The index is a Phase.
using PhaseTimes = std::vector<Duration>;

// The stages of making a batch from files. They are in kDataStages, and in this order in DataTimes.
inline constexpr std::array<const char*, 4> kDataStages = {"read", "decode", "transform", "batch"};
// How long a worker's input threads spent in each stage, summed over the threads. Empty: the worker reads no files
// while it trains.
using DataTimes = std::vector<Duration>;

// The positions that have been visited in an epoch. In a list of EpochLedgers, the first entry is the first incomplete
// epoch, and no position of an epoch after the last entry has been visited.
struct EpochLedger {
  std::uint32_t epoch = 0;
  std::vector<Interval> visited;  // ascending, with gaps between them
};

// The figures of a job that only its pacer knows.
struct PacerReport {
  Step global_step;
  std::uint64_t examples = 0;  // number of examples in the applied updates
  Duration training{};  // time from the first applied step (or the last step of the warm-up) to the newest applied step
  std::uint64_t measured_steps = 0;     // steps within `training`
  std::uint64_t measured_examples = 0;  // examples within `training`
  double loss = 0.0;                    // mean over the newest steps; NaN before the first step
  std::uint64_t late = 0;  // sync: number of gradients that were dropped because their step was committed without them
  std::uint64_t skipped = 0;  // number of steps that weren't applied because a loss or gradient wasn't finite
  std::uint32_t skipped_in_row = 0;
  std::uint32_t complete_epochs = 0;
  std::vector<EpochLedger> ledger;
  bool finished = false;  // train.steps is reached
  // The mean age of the gradients in the newest steps. A gradient's age is the number of steps that were applied after
  // its worker got the parameters from which it computed the gradient, and before the gradient itself was applied.
  double staleness = 0.0;
  Step slowest_clock;          // ssp: the lowest step number among the active workers; a worker that joins begins there
  double learning_rate = 0.0;  // learning rate of the next update; 0 = not known yet
};

// How many batches of its own order a worker has done (data.sharding = "none").
struct OwnBatches {
  TaskId worker;
  Step batches;
  bool operator==(const OwnBatches&) const = default;
};

// The pacer's answer to SetRoster.
struct RosterApplied {
  JobId job;
  Generation generation;
  RosterVersion version;
  Step step;          // the roster holds for all steps after this one
  PacerReport pacer;  // the pacer's figures at that step; the chief makes new leases from the ledger in it
  // async and ssp with data.sharding = "none": how many batches of its own order each worker has done, also one that
  // isn't in the roster
  std::vector<OwnBatches> batches{};
};

// How much work a shard has done since it was made. The difference between two such reports shows how busy the shard
// was between them.
struct ShardLoad {
  ShardId shard;
  Duration lived{};     // time since the shard was made
  Duration busy{};      // CPU time of its thread since then; several shards may share a thread
  Duration applying{};  // wall time spent in summing and applying gradients
  bool operator==(const ShardLoad&) const = default;
};

// A task sends this message regularly. Its arrival shows that the task lives, and its content shows whether the task
// makes progress.
struct Heartbeat {
  JobId job;  // 0 = idle
  Generation generation;
  Phase phase = Phase::kIdle;
  Duration in_phase{};
  std::uint64_t steps = 0;  // worker: number of its own steps
  std::uint64_t examples = 0;
  double loss = 0.0;
  PhaseTimes phase_times;            // worker
  std::vector<std::uint64_t> turns;  // ps: a counter for each shard thread; if a counter stands still, the thread hangs
  // from the ps that owns shard 0; also sent at once when an epoch is complete or the job finished
  std::optional<PacerReport> pacer;
  std::vector<ShardLoad> shards;  // ps: one entry for each of its shards that has reported its load
  // A counter of long work for this job and generation: bytes restored, data read, files written. Only its growth has a
  // meaning. While it grows, the chief extends the deadline of the work. If it stands still, the work times out.
  std::uint64_t work = 0;
  // worker: the metrics over the examples of its newest steps. Empty before its first step, and if the engine computes
  // no metrics while it trains.
  std::vector<MetricValue> metrics;
  Instant clock{};       // the sender's clock when it sent this message; transport::ChiefLink fills it in. 0: not told
  DataTimes data_times;  // worker: since it has opened the data set
  Wires wires = 0;       // worker: of its channels, as in JobOpened; 0: not told
};

struct HeartbeatAnswer {
  Term term;
  Duration heartbeat_timeout{};  // the chief's timeout, which applies to all tasks; it may change
  Instant heartbeat_clock{};     // Heartbeat::clock of the heartbeat that this message answers
  Instant chief_clock{};         // the chief's clock when it sent this message; its shell fills it in. 0: not told
  Duration heartbeat_pause{};    // the time until the task's next heartbeat. 0: a tenth of the timeout
};

// The task was told to end (SIGTERM), and asks the chief for permission to leave. It waits for LeaveGranted, but only
// for a limited time. A worker stops after its current push, and the chief lends its unvisited records to others. If a
// ps leaves and the job takes checkpoints, one is taken, and no push is applied after it. The task repeats the request
// to each new chief.
struct LeaveRequest {};

// The chief's answer to LeaveRequest: no job needs the task any more.
struct LeaveGranted {};

struct LogLine {
  std::int64_t wall_nanoseconds = 0;  // Unix time
  TaskId task;
  std::uint8_t level = 2;  // 0 debug, 1 info, 2 warn, 3 error
  std::string text;
};

struct LogLines {
  std::vector<LogLine> lines;
  std::uint64_t dropped = 0;  // number of lines dropped before these, by the rate limit or because too many waited
};

}  // namespace disttrain
