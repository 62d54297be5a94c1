// The chief's journal: its records, in the order of the decisions, and the state that they add up to. It never holds
// per-step data. chiefd/journal/file.h keeps it on a disk.
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

// A chief has started: `journal` is drawn once, when the journal is made.
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

// The totals that a job's rates are computed from.
struct Training {
  Duration time{};
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  bool operator==(const Training&) const = default;
};

// A generation begins: the owner of each shard, the roster, and what the shards begin with.
struct GenerationRecord {
  JobId job;
  Generation generation;
  std::uint64_t mark = 0;  // the number in the job's checkpoint folder
  std::vector<Owner> owners;
  Roster roster;
  std::string restore_path;  // "": initial values
  Step restore_step;
  std::uint32_t recoveries = 0;  // rollbacks that the job has had so far
  Training before{};             // in earlier generations
  std::string init_path{};       // the path of the initial values; "": drawn at random
  std::uint32_t places = 0;      // workers that the shards have memory for; 0: not known
  bool operator==(const GenerationRecord&) const = default;
};

// The generation trains. A restarted chief that finds this record goes on with the generation.
struct TrainingRecord {
  JobId job;
  Generation generation;
  bool operator==(const TrainingRecord&) const = default;
};

// Workers join or leave. Durable before the pacer hears of it.
struct RosterRecord {
  JobId job;
  Generation generation;
  Roster roster;
  bool operator==(const RosterRecord&) const = default;
};

// `borrowers`: one worker (async, ssp) or the roster in rank order (sync).
struct GrantRecord {
  JobId job;
  Generation generation;
  std::vector<Member> borrowers;
  Lease lease;
  bool operator==(const GrantRecord&) const = default;
};

// All leases of the generation except these are used up. Written after each 1000 grants, so that they don't pile up,
// and after a fence.
struct OpenGrantsRecord {
  JobId job;
  Generation generation;
  std::vector<LeaseId> open;
  bool operator==(const OpenGrantsRecord&) const = default;
};

struct EvaluationStatus {
  Step step;
  double loss = 0.0;
  std::optional<double> accuracy;
  std::uint64_t examples = 0;
  bool final = false;
  std::uint64_t parameters_hash = 0;  // equal if the parameters are equal bit for bit
  bool operator==(const EvaluationStatus&) const = default;
};

// Why a job recovers. `reason` doesn't name the task.
struct Cause {
  std::optional<TaskId> task;  // none: not a single task
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

// How a job ended, and its figures at that time. For later queries, and for a restarted chief that finds tasks which
// have closed the job.
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
  bool operator==(const EndRecord&) const = default;
};

// A checkpoint was committed. The folder is authoritative; this record is for status and events.
struct CheckpointRecord {
  JobId job;
  Generation generation;
  Step step;
  std::string path;
  bool operator==(const CheckpointRecord&) const = default;
};

// An event for `disttrain events`: which task died, how that was noticed, what was restored, how long it took.
struct EventRecord {
  std::int64_t wall_nanoseconds = 0;  // Unix time; the writer of the journal fills it in
  JobId job;                          // 0: of no job
  std::string kind;                   // "task_lost", "rolled_back", ...: docs/json.md has them all
  std::string task;                   // "ps/1", or ""
  std::uint64_t step = 0;             // global step, if the job had one
  std::string text;                   // a sentence
  std::string cause{};                // for a loss and its consequences: Cause::reason; `task` is Cause::task
  // Time since the host booted, suspended time included. Filled in with wall_nanoseconds. 0: not known.
  std::int64_t uptime_nanoseconds{};
  bool operator==(const EventRecord&) const = default;
};

// The current values of the two clocks of events.
struct EventClocks {
  std::int64_t wall_nanoseconds = 0;
  std::int64_t uptime_nanoseconds = 0;
};
// How long ago the event happened. The wall clock may have been set meanwhile; the time since the boot can't be set,
// and gives a lower bound, whichever boot the event happened in. None: the wall clock was set back, and the event has
// no time since the boot.
std::optional<Duration> age_of(const EventRecord& event, const EventClocks& now);

// The kinds of events that a restarted chief evaluates.
inline constexpr char kLossCounted[] = "loss_counted";   // the job rolls back for it
inline constexpr char kLostAtStart[] = "lost_at_start";  // nothing was placed yet
inline constexpr char kWorkerLost[] = "worker_lost";
inline constexpr char kRolledBack[] = "rolled_back";
inline constexpr char kTakenUp[] = "taken_up";
inline constexpr char kReclaimed[] = "reclaimed";
inline constexpr char kCheckpointTaken[] = "checkpoint";
inline constexpr char kWorkerLeft[] = "worker_left";
inline constexpr char kTaskLeaves[] = "task_leaves";
inline constexpr char kTaskJoined[] = "task_joined";
inline constexpr char kRollsBack[] = "rolls_back";  // for a task that was told to end, or for a link: no loss

using Record = std::variant<TermRecord, SubmittedRecord, StateRecord, GenerationRecord, GrantRecord, DescribedRecord,
                            TrainingRecord, RosterRecord, OpenGrantsRecord, CheckpointRecord, EventRecord, EndRecord>;

struct JournaledJob {
  SubmittedRecord submitted;
  JobState state = JobState::kQueued;
  std::string reason;
  std::optional<JobDescribed> described;
  GenerationRecord generation;            // the newest; number 0: none yet
  Roster roster;                          // of that generation
  bool is_training = false;               // that generation has begun to train
  std::map<LeaseId, GrantRecord> grants;  // of that generation, not known to be used up
  std::optional<CheckpointRecord> checkpoint;
  std::optional<EndRecord> ended;

  bool operator==(const JournaledJob&) const = default;
};

// The most ended jobs and events that are kept.
inline constexpr std::size_t kMaxEndedJobs = 100;
inline constexpr std::size_t kMaxEvents = 2000;
// The most kept events of checkpoints. These are so frequent that they would push out the events of losses.
inline constexpr std::size_t kMaxCheckpointEvents = 500;

// Appends the event, and drops the oldest events beyond these limits. The order is oldest first.
void add_event(std::deque<EventRecord>& events, const EventRecord& event);

struct JournalState {
  JournalId journal;  // 0: nothing has been written yet
  Term term;
  std::map<Term, Incarnation> chiefs;  // of the newest kMaxFormerChiefs terms
  JobId last_job;                      // the highest number ever given
  std::map<JobId, JournaledJob> jobs;
  std::deque<EventRecord> events;  // oldest first

  bool operator==(const JournalState&) const = default;
};

// A record of an unknown job changes nothing: the job was forgotten.
void apply(JournalState& state, const Record& record);

// The shortest list of records that adds up to `state`. The journal is rewritten with these at each start, and when it
// has grown to several times their size.
std::vector<Record> compacted(const JournalState& state);

// The state that a chief may begin with if the journal has lost its last `lost` records; none: the number isn't known.
//
//   1. Numbers that lost records may have used are skipped.
//   2. Jobs that ran go back to their newest checkpoint.
//   3. The journal gets a new id (`anew`), so that tasks drop what they hold by lost records.
//
// `newest`: the newest known term.
JournalState salvaged(JournalState state, std::optional<std::uint64_t> lost, Term newest, JournalId anew,
                      const std::string& why);
// How many numbers are skipped if the number of lost records isn't known.
inline constexpr std::uint32_t kUnknownLoss = 1000;

}  // namespace disttrain::chiefd
