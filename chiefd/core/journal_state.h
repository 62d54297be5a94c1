// What the chief's journal says: records in the order in which they were decided, and the state that they add up to.
// Never per-step data. chiefd/journal/file.h keeps them on a disk.
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
  Incarnation chief{};  // its process
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

// What the job trains: told by a worker once, before its first generation.
struct DescribedRecord {
  JobDescribed described;
  bool operator==(const DescribedRecord&) const = default;
};

// What a job's rates are made of.
struct Training {
  Duration time{};
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  bool operator==(const Training&) const = default;
};

// A generation begins: who owns what, who is in its roster, and what its shards begin with.
struct GenerationRecord {
  JobId job;
  Generation generation;
  std::uint64_t mark = 0;  // in the job's checkpoint folder. The secret of the channels is on no disk
  std::vector<Owner> owners;
  Roster roster;
  std::string restore_path;  // "": initial values
  Step restore_step;
  std::uint32_t recoveries = 0;  // that the job has had so far
  Training before{};             // in earlier generations
  std::string init_path{};       // where the initial values are read; "": drawn
  std::uint32_t places = 0;      // workers that the shards' memory is made for; 0: not known
  bool operator==(const GenerationRecord&) const = default;
};

// The generation trains: a chief that finds this takes it up where it is.
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

// All leases of the generation but these are used up; written now and then, so that grants don't pile up.
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
  std::uint64_t parameters_hash = 0;  // equal where the parameters are, bit for bit
  bool operator==(const EvaluationStatus&) const = default;
};

// Why a job begins anew. `reason` doesn't name the task.
struct Cause {
  std::optional<TaskId> task;  // none: no single one
  std::string reason;
  bool operator==(const Cause&) const = default;
};
// "ps/0: no heartbeat for 1 s".
std::string to_string(const Cause& cause);

// Why it failed.
struct RootCause {
  TaskId task;
  std::string reason;
  bool operator==(const RootCause&) const = default;
};

// What a job had come to when it was decided that, and how, it ends: for those who ask later, and for a chief that
// finds tasks which have closed it.
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

// A checkpoint was committed. The folder is the truth; this is what status and events know of it.
struct CheckpointRecord {
  JobId job;
  Generation generation;
  Step step;
  std::string path;
  bool operator==(const CheckpointRecord&) const = default;
};

// What happened, for those who ask later: who died, who noticed and how, what was restored, how long it took.
struct EventRecord {
  std::int64_t wall_nanoseconds = 0;  // Unix time; whoever writes the record fills it in
  JobId job;                          // 0: of no job
  std::string kind;                   // "task_lost", "rolled_back", ...: docs/json.md has them all
  std::string task;                   // "ps/1", or ""
  std::uint64_t step = 0;             // global step, where it says something
  std::string text;                   // a sentence
  std::string cause{};                // of a loss and what follows from it: Cause::reason; its task is `task`
  // Since the host booted, suspended time too; filled in with the wall clock's. 0: not known.
  std::int64_t uptime_nanoseconds{};
  bool operator==(const EventRecord&) const = default;
};

// What the clocks of events show.
struct EventClocks {
  std::int64_t wall_nanoseconds = 0;
  std::int64_t uptime_nanoseconds = 0;
};
// How long ago it happened. The wall clock may have been set meanwhile, the time since the boot can't: the event is at
// least as old as that says, in whatever boot it happened. None: the wall clock was set back, and nothing else is
// known.
std::optional<Duration> age_of(const EventRecord& event, const EventClocks& now);

// The kinds that a later chief goes by.
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
  GenerationRecord generation;            // the newest; 0: none yet
  Roster roster;                          // of that generation
  bool is_training = false;               // that generation has begun to
  std::map<LeaseId, GrantRecord> grants;  // of that generation, not known to be used up
  std::optional<CheckpointRecord> checkpoint;
  std::optional<EndRecord> ended;

  bool operator==(const JournaledJob&) const = default;
};

// Jobs that ended, and events, are remembered only up to these numbers.
inline constexpr std::size_t kMaxEndedJobs = 100;
inline constexpr std::size_t kMaxEvents = 2000;
// Of these no more are of checkpoints, which come so often that they would push out who died, and why.
inline constexpr std::size_t kMaxCheckpointEvents = 500;

// The newest within these numbers, oldest first.
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

// Records of jobs that aren't known change nothing: theirs was forgotten.
void apply(JournalState& state, const Record& record);

// The shortest list of records that adds up to `state`. The journal is rewritten so at each start, and when it has
// grown far beyond it.
std::vector<Record> compacted(const JournalState& state);

// What a chief may begin with where the journal has lost its last records: so many, or nobody knows how many. Numbers
// that lost records may have given away are passed over, jobs that ran go back to their newest checkpoint, and the
// journal is another one (`anew`), so that tasks drop what lost records told them. `newest`: the newest term known.
JournalState salvaged(JournalState state, std::optional<std::uint64_t> lost, Term newest, JournalId anew,
                      const std::string& why);
// Passed over where nobody knows.
inline constexpr std::uint32_t kUnknownLoss = 1000;

}  // namespace disttrain::chiefd
