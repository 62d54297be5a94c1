// The chief's journal: records of the chief's decisions in their order, and the state that results from these records.
// No record is about a single training step. chiefd/journal/file.h keeps the records on a disk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

enum class JobState : std::uint8_t {
  kQueued,
  kStarting,
  kRunning,
  kPaused,
  kEvaluating,
  kStopping,
  kFinished,
  kFailed,
  kStopped,
};
// "queued", "starting", ...
const char* to_string(JobState state);
// finished, failed or stopped.
bool is_final(JobState state);

// A chief has started. `journal` is the random id of the journal, which is drawn once, when the journal is made.
struct TermRecord {
  JournalId journal;
  Term term;
  Incarnation chief{};  // the chief's process
  bool operator==(const TermRecord&) const = default;
};

struct SubmittedRecord {
  JobId job;
  std::string name;
  std::string toml;
  std::uint64_t warmup_steps = 0;
  std::uint32_t awaited_workers = 0;
  JobId resubmit_of{};          // the job whose file was submitted again. 0: a client has submitted the file
  std::uint32_t resubmits = 0;  // how many jobs in a row job.on_failure has submitted again, this one included
  bool operator==(const SubmittedRecord&) const = default;
};

struct StateRecord {
  JobId job;
  JobState state = JobState::kQueued;
  std::string reason;
  bool operator==(const StateRecord&) const = default;
};

// The model and data of a job. A worker reports them once, before the first generation.
struct DescribedRecord {
  JobDescribed described;
  bool operator==(const DescribedRecord&) const = default;
};

// The totals from which the chief computes a job's rates.
struct Training {
  Duration time{};
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  bool operator==(const Training&) const = default;
};

// A generation begins. The record has the owner of each shard, the roster, and the checkpoint or the initial values
// from which the shards start.
struct GenerationRecord {
  JobId job;
  Generation generation;
  std::uint64_t mark = 0;  // the number in the job's checkpoint folder by which a ps recognises the folder
  std::vector<Owner> owners;
  Roster roster;
  std::string restore_path;  // "": initial values
  Step restore_step;
  std::uint32_t recoveries = 0;    // the number of rollbacks that the job has had so far
  Training before{};               // the totals of earlier generations
  std::string init_path{};         // the path of the initial values. "": they are drawn at random
  std::uint32_t places = 0;        // for how many workers the shards have memory. 0: not known
  bool has_small_buckets = false;  // whether the layout was made with BucketSize::kSmall
  bool operator==(const GenerationRecord&) const = default;
};

// The generation has begun to train. A restarted chief that finds this record goes on with the generation.
struct TrainingRecord {
  JobId job;
  Generation generation;
  bool operator==(const TrainingRecord&) const = default;
};

// Workers join or leave. This record is durable before the pacer hears of the new roster.
struct RosterRecord {
  JobId job;
  Generation generation;
  Roster roster;
  bool operator==(const RosterRecord&) const = default;
};

// A lease was granted, in async or ssp. `borrowers` has one worker. In sync the chief writes no such record, because a
// block of steps is valid only for one roster, and a restarted chief makes a new roster and new blocks.
struct GrantRecord {
  JobId job;
  Generation generation;
  std::vector<Member> borrowers;
  Lease lease;
  bool operator==(const GrantRecord&) const = default;
};

// Lists the leases of the generation that workers hold and haven't used up. All other leases of the generation are used
// up, or the chief has taken them back from a fenced worker. The chief writes this record after all shards have fenced
// a worker, and after about every 1000 grants. So the records of grants don't pile up. In sync the chief writes no such
// record, because it journals no grants.
struct OpenGrantsRecord {
  JobId job;
  Generation generation;
  std::vector<LeaseId> open;
  bool operator==(const OpenGrantsRecord&) const = default;
};

struct EvaluationStatus {
  Step step;
  double loss = 0.0;
  std::vector<MetricValue> metrics;  // of the model, in its order
  std::uint64_t examples = 0;
  bool final = false;
  std::uint64_t parameters_hash = 0;  // two evaluations of bit-for-bit equal parameters have the same hash
  bool operator==(const EvaluationStatus&) const = default;
};

// A checkpoint in the job's folder. Checkpoints are ordered by generation and then by step, as their ages are.
struct KeptCheckpoint {
  Generation generation;
  Step step;
  std::string path;
  auto operator<=>(const KeptCheckpoint&) const = default;
};

// A checkpoint that retention doesn't remove, because its evaluation is one of the best.
struct BestCheckpoint {
  KeptCheckpoint checkpoint;
  double value = 0.0;  // of evaluate.metric
  bool operator==(const BestCheckpoint&) const = default;
};

// The evaluations of a job. chiefd/core/evaluation_book.h makes this record, which replaces the one before.
struct EvaluationsRecord {
  JobId job;
  std::optional<EvaluationStatus> newest;
  std::vector<KeptCheckpoint> evaluated;  // of the checkpoints that were in the folder, ascending
  std::vector<BestCheckpoint> best;       // the best one first; at most evaluate.keep_best
  std::optional<double> best_value;       // of all evaluations
  Step best_step;                         // of best_value
  Step counted;                           // the newest step whose evaluation has counted for evaluate.stop_after
  std::uint32_t without_progress = 0;     // the evaluations in a row that had no better value
  std::string exported;                   // the path of the checkpoint that best.safetensors was made of; "": none
  std::string early_end;                  // why the job finishes early; "": it doesn't
  bool operator==(const EvaluationsRecord&) const = default;
};

// Why a job has to recover. `reason` doesn't contain the name of the task.
struct Cause {
  std::optional<TaskId> task;  // none: no single task is the cause
  std::string reason;
  bool operator==(const Cause&) const = default;
};
// "ps/0: no heartbeat for 1 s".
std::string to_string(const Cause& cause);

// Why a job failed.
struct RootCause {
  TaskId task;
  std::string reason;
  bool operator==(const RootCause&) const = default;
};

// How a job ended, and its figures at that time. The chief keeps them for later queries. A restarted chief also needs
// them, because tasks that have closed the job don't report its figures any more.
struct EndRecord {
  JobId job;
  JobState state = JobState::kFinished;
  std::string reason;
  Generation generation;
  Step step;
  std::uint64_t steps_target = 0;
  std::uint64_t examples = 0;
  Training training{};  // in all its generations
  std::uint32_t epochs = 0;
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
  double staleness = 0.0;
  std::optional<double> loss;
  std::optional<EvaluationStatus> evaluation;
  std::optional<ErrorCode> code;
  std::optional<RootCause> root_cause;
  std::vector<MetricValue> metrics{};  // as JobStatus::metrics
  bool operator==(const EndRecord&) const = default;
};

// A checkpoint was committed. The checkpoint folder itself decides which checkpoints exist. This record is for the
// status and for events, and with it the chief detects a folder that has lost its checkpoints.
struct CheckpointRecord {
  JobId job;
  Generation generation;
  Step step;
  std::string path;
  bool operator==(const CheckpointRecord&) const = default;
};

// An event, as `disttrain events` prints it. For example: which task died, how the chief noticed that, which checkpoint
// was restored, and how long that took.
struct EventRecord {
  std::int64_t wall_nanoseconds = 0;  // Unix time, which the shell fills in
  JobId job;                          // 0: of no job
  std::string kind;                   // such as "task_lost" or "rolled_back"; docs/json.md lists all kinds
  std::string task;                   // "ps/1", or ""
  std::uint64_t step = 0;             // the global step, if the job had one
  std::string text;                   // a sentence
  // If the event is a loss or a rollback, or follows from one, this is Cause::reason, and `task` is Cause::task.
  std::string cause{};
  // The time since the host booted, including the time for which it was suspended. The shell fills it in together with
  // wall_nanoseconds. 0: not known.
  std::int64_t uptime_nanoseconds{};
  bool operator==(const EventRecord&) const = default;
};

// The current time of the two clocks with which events are stamped.
struct EventClocks {
  std::int64_t wall_nanoseconds = 0;
  std::int64_t uptime_nanoseconds = 0;
};
// How long ago the event happened: the larger of two ages, one by the wall clock and one by the time since the host's
// boot. Somebody may have set the wall clock since the event, so the first age may be wrong. The second age is never
// too large, but it is too small if the host has booted again. None: the wall clock was set back, and the event has no
// usable time since the boot.
std::optional<Duration> age_of(const EventRecord& event, const EventClocks& now);

// The kinds of events from which a restarted chief learns what has happened to its job.
inline constexpr char kLossCounted[] = "loss_counted";   // the job rolls back because of this loss
inline constexpr char kLostAtStart[] = "lost_at_start";  // a task was lost before the job had any shards
inline constexpr char kWorkerLost[] = "worker_lost";
inline constexpr char kRolledBack[] = "rolled_back";
inline constexpr char kTakenUp[] = "taken_up";
inline constexpr char kReclaimed[] = "reclaimed";
inline constexpr char kCheckpointTaken[] = "checkpoint";
inline constexpr char kWorkerLeft[] = "worker_left";
inline constexpr char kTaskLeaves[] = "task_leaves";
inline constexpr char kTaskJoined[] = "task_joined";
// The job has waited for absent tasks for long (job/rules/absences.h).
inline constexpr char kStillWaiting[] = "still_waiting";
// A failed job is submitted again (job.on_failure).
inline constexpr char kResubmitted[] = "resubmitted";
// The job rolls back without a loss, for example because a task was told to end or a link is broken.
inline constexpr char kRollsBack[] = "rolls_back";

using Record = std::variant<TermRecord, SubmittedRecord, StateRecord, GenerationRecord, GrantRecord, DescribedRecord,
                            TrainingRecord, RosterRecord, OpenGrantsRecord, CheckpointRecord, EventRecord, EndRecord,
                            EvaluationsRecord>;

struct JournaledJob {
  SubmittedRecord submitted;
  JobState state = JobState::kQueued;
  std::string reason;
  std::optional<JobDescribed> described;
  GenerationRecord generation;            // the newest generation. Its number is 0 if the job has none yet
  Roster roster;                          // the newest roster of that generation
  bool is_training = false;               // true: that generation has begun to train
  std::map<LeaseId, GrantRecord> grants;  // the leases of that generation that aren't known to be used up
  std::optional<CheckpointRecord> checkpoint;
  std::optional<EvaluationsRecord> evaluations;
  std::optional<EndRecord> ended;

  bool operator==(const JournaledJob&) const = default;
};

// The most ended jobs, and the most events, that the chief keeps.
inline constexpr std::size_t kMaxEndedJobs = 100;
inline constexpr std::size_t kMaxEvents = 2000;
// The most events about checkpoints that the chief keeps. Without this limit they would push out the events about
// losses, because checkpoints are much more frequent than losses.
inline constexpr std::size_t kMaxCheckpointEvents = 500;
// The most entries of EvaluationsRecord::evaluated. Older checkpoints count as evaluated.
inline constexpr std::size_t kMaxEvaluatedKept = 256;

// Appends the event to `events`, whose first event is the oldest. Drops the oldest events beyond the limits above.
void add_event(std::deque<EventRecord>& events, const EventRecord& event);

struct JournalState {
  JournalId journal;  // 0: nothing has been written yet
  Term term;
  std::map<Term, Incarnation> chiefs;  // the chiefs of the newest kMaxFormerChiefs terms
  JobId last_job;                      // the highest number that a job has ever had
  std::map<JobId, JournaledJob> jobs;
  std::deque<EventRecord> events;  // oldest first

  bool operator==(const JournalState&) const = default;
};

// Changes the state as the record says. A record of an unknown job changes nothing, because the chief has forgotten the
// job.
void apply(JournalState& state, const Record& record);

// The shortest list of records that results in `state`. The chief rewrites the journal with this list at each start,
// and when the journal has grown to several times the size of the list.
std::vector<Record> compacted(const JournalState& state);

// The state from which a chief may start if the journal has lost its last `lost` records (none: the number isn't
// known). It differs from `state` in three ways:
//
//   1. The chief skips the numbers of terms, jobs and generations that lost records may have used.
//   2. Jobs that were running go back to their newest checkpoint. An event for each job reports this, with the
//      reason `why`.
//   3. The journal gets the new id `anew`, so that each task drops the job that it holds.
//
// `newest` is the newest known term.
JournalState salvaged(JournalState state, std::optional<std::uint64_t> lost, Term newest, JournalId anew,
                      const std::string& why);
// How many numbers the chief skips if the number of lost records isn't known.
inline constexpr std::uint32_t kUnknownLoss = 1000;

}  // namespace disttrain::chiefd
