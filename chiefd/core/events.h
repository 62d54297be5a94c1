// The inputs and outputs of the chief's core. An event says what has happened. Actions say what the shell must do, in
// order. A slow action, such as Persist, carries a ticket, and its result comes back as an event with the same ticket,
// such as Persisted. Only after that event does the core return the actions that depend on the result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/config/job_config.h"
#include "common/layout.h"
#include "common/messages/checkpoint.h"
#include "common/messages/client.h"
#include "common/messages/control.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

// A connected client, such as a command line. The shell gives each client a number.
using ClientId = StrongId<struct ClientIdTag, std::uint64_t>;
using Ticket = StrongId<struct TicketTag, std::uint64_t>;

using FromTask =
    std::variant<JobDescribed, ShardsCreated, JobOpened, RosterApplied, LeaseRequest, WorkerFenced, WorkerFinished,
                 Evaluated, JobClosed, TaskFailed, Accusation, Heartbeat, CheckpointPrepared, ShardWritten,
                 CheckpointFailed, LeaveRequest, CheckpointRequest, EvaluationFailed>;
using ToTask = std::variant<DescribeJob, CreateShards, OpenJob, StartJob, SetRoster, FenceWorker, LeaseGrant, StopJob,
                            SetEvaluator, Evaluate, CloseJob, HeartbeatAnswer, PauseJob, PrepareCheckpoint, TakeCut,
                            MarkChannels, AbandonCheckpoint, LeaveGranted, EvaluateCheckpoint>;

// A job as a client has submitted it: the text of the job file, and the configuration that was parsed from the text.
struct Submission {
  std::string toml;
  JobConfig config;
  std::uint64_t warmup_steps = 0;
  // The job doesn't begin before this many workers are ready. Once it has begun, it needs only job.min_workers workers.
  std::uint32_t awaited_workers = 0;
  JobId resubmit_of{};          // see SubmittedRecord
  std::uint32_t resubmits = 0;  // see SubmittedRecord
};

// ---- events

struct TaskJoined {
  TaskHello hello;
  // The host from which the task has connected, such as "10.0.0.2" or "[::1]". "": not known.
  std::string peer_host{};
};
struct ConnectionLost {
  Member member;
  std::string why;
};
struct TaskMessage {
  Member from;
  FromTask message;
};
// The outcome of a probe. kRefused proves that no process listens at the address. kNoAnswer proves nothing.
enum class ProbeOutcome { kAnswered, kRefused, kNoAnswer };
struct ProbeDone {
  Member member;
  ProbeOutcome outcome = ProbeOutcome::kNoAnswer;
  Member answered_by{};  // the process that answered (kAnswered). Incarnation 0: the answer didn't name the process
};
struct Submit {
  ClientId client;
  Submission submission;
  bool goes_on = false;  // if a job with the same file hasn't ended yet, go on with that job and start no other
};
// Submits a job again that has failed or was stopped.
struct Resubmit {
  ClientId client;
  std::string job;  // as in Stop
};
struct Stop {
  ClientId client;
  std::string job;  // the job's number or name. "": the current job
  bool kill = false;
  std::string user;
};
struct Persisted {
  Ticket ticket;
};
// A client asks for a checkpoint now.
struct Save {
  ClientId client;
  std::string job;
};

// A checkpoint from which the shards can be restored.
struct RestorePoint {
  std::string path;
  Generation generation;
  Step step;
  PacerReport pacer;
  std::uint64_t records = 0;  // the number of records in an epoch. 0: not known
  // data.sharding = "none": how many batches of its own order each worker had done
  std::map<TaskId, Step> batches;
  std::uint64_t bytes = 0;  // of its shards' files
  // data.sharding = "none": the records of each of these batches. 0: another sharding. None: not known.
  std::optional<std::uint64_t> own_batch{};
};
// What the evaluations of a job found, as the job's folder keeps it (chiefd/kept_evaluations.h). Of the record, the
// job, the newest evaluation and the reason of an early end aren't kept.
struct KeptEvaluations {
  std::string metric;  // the values are of this metric
  bool is_higher_better = false;
  EvaluationsRecord found;
  bool operator==(const KeptEvaluations&) const = default;
};
// The result of FolderWork.
struct FolderAnswer {
  // After OpenFolder, FindNewest and SetAside: the newest checkpoint that can be used.
  std::optional<RestorePoint> newest;
  // The highest generation of the checkpoints in the folder, whether they can be used or not.
  Generation newest_generation;
  // The mark that the folder holds. A ps that finds this mark knows that it sees the same folder as the chief.
  std::uint64_t mark = 0;
  // The checkpoints that can't be used or are gone, each with the reason.
  std::vector<std::string> broken;
  // After BeginAttempt: the folder of the attempt. After CommitAttempt and FindInit: the path of the checkpoint.
  std::string path;
  // After each work except BeginAttempt and FindInit: the checkpoints in the folder, ascending. None: they couldn't be
  // listed.
  std::optional<std::vector<KeptCheckpoint>> kept{};
  // After KeepBest: the path of the checkpoint that was exported. "": none was.
  std::string exported{};
  // After OpenFolder: what the evaluations of earlier jobs in this folder found. None: nothing is kept there.
  std::optional<KeptEvaluations> evaluations{};
  // Which part of the work has failed, although the rest is done. "": nothing has failed.
  std::string warning;
  // After FindInit: a sentence about the variables of the file that the job ignores. "": there are none.
  std::string ignored;
  // After OpenFolder and CommitAttempt: why checkpoints don't keep the job's program, said once. "": they do.
  std::string program_warning;
};
struct FolderDone {
  JobId job;
  Ticket ticket;
  Result<FolderAnswer> answer;
};
// The operator has changed a setting that may change while the chief runs.
struct Reconfigured {
  Duration heartbeat_timeout{};
};
// The shell has written the trace of a job (train.profile_steps), or has failed to.
struct TraceWritten {
  JobId job;
  std::string path;      // "": no trace is written
  bool is_whole = true;  // false: events of some task are missing
  std::string text;      // a sentence for the operator
};
// Some time has passed. The shell sends a tick at least every Timeouts::interval.
struct Tick {};

using Event = std::variant<TaskJoined, ConnectionLost, TaskMessage, ProbeDone, Submit, Resubmit, chiefd::Stop, Save,
                           Persisted, FolderDone, Reconfigured, TraceWritten, Tick>;

// ---- actions

// The chief's term is durable, so the shell may accept connections.
struct Listen {};
// An answer to TaskJoined: the chief accepts the task, and the new connection belongs to this member from now on.
struct Admit {
  Member member;
};
struct RefuseTask {
  Member member;
  Refused refused;
};
// Closes the connection of this member, if there is one.
struct Disconnect {
  Member member;
};
struct Send {
  TaskId task;
  ToTask message;
};
struct Probe {
  Member member;
  std::string address;
};
struct Persist {
  Ticket ticket;
  Record record;
};
// The structs from here to FolderWork describe slow work on a job's checkpoint folder. The shell does one piece of work
// at a time, and reports the result of each with FolderDone.
//
// OpenFolder takes the lock of the job's folder. It fails with kConfig if another live job holds the lock, or if the
// folder must be empty and isn't.
struct OpenFolder {
  std::string directory;
  std::string name;
  bool must_be_empty = false;
  // A number to write into the folder, so that a ps can check that it sees the same folder. It isn't secret.
  std::uint64_t mark = 0;
  // The newest checkpoint that the chief knows of. If this is set, but the folder has no checkpoint at all, the work
  // fails with kFailed and changes nothing.
  std::string committed;
  // The job's step program, which is opened here and kept by each checkpoint. "": it has none. If the chief can't read
  // the package, the answer has a program_warning.
  std::string program{};
  // JobDescribed::columns. If the newest checkpoint keeps columns that differ, the work fails with kConfig.
  std::string columns{};
};
struct FindNewest {
  std::uint64_t mark = 0;
  std::string committed;
  std::string columns{};  // as above
};
// Finds the checkpoint with the initial parameters. If `path` is the folder of a job, this is the newest checkpoint in
// it. The checkpoint that was found is protected from removal. If `path` names no checkpoint, or the chief can't see
// it, the answer repeats `path`, and the ps tasks read the file at that path.
// With the job's init_map and model, the answer says which variables of the file are ignored.
struct FindInit {
  std::string path;
  std::map<std::string, std::string> init_map{};
  ModelSpec model{};
};
// Sets a damaged checkpoint aside, and then does the same as FindNewest.
struct SetAside {
  std::string path;
  std::uint64_t mark = 0;
};
struct BeginAttempt {
  Generation generation;
  std::uint64_t attempt = 0;
};
// Commits the checkpoint, and then removes the old checkpoints that retention doesn't keep.
struct CommitAttempt {
  JobConfig config;
  std::string job_toml;
  Layout layout;
  std::uint64_t records = 0;
  Generation generation;
  std::uint64_t attempt = 0;
  std::vector<ShardWritten> shards;   // by shard
  std::vector<std::string> pinned{};  // the paths of the checkpoints that retention mustn't remove
  std::string columns{};              // JobDescribed::columns, which the checkpoint keeps
};
// Lists the checkpoints in the folder. If `best` isn't empty, first exports this checkpoint's parameters to
// best.safetensors in the job's folder, with `metadata` in the file's header. If the job evaluates averages, exports
// the averages. The file changes atomically. If the export fails, the answer has a warning. Then writes `evaluations`
// to the folder, with the name of the exported checkpoint. The shell completes this work even if the job has ended.
struct KeepBest {
  std::string best;
  bool has_average = false;
  std::map<std::string, std::string> metadata{};
  std::optional<KeptEvaluations> evaluations{};
};
struct FolderWork {
  JobId job;
  Ticket ticket;
  std::variant<OpenFolder, FindNewest, FindInit, SetAside, BeginAttempt, CommitAttempt, KeepBest> work;
};
// Releases the folder's lock. The shell doesn't answer this.
struct CloseFolder {
  JobId job;
};

struct AnswerClient {
  ClientId client;
  std::variant<JobSubmitted, RequestDone, Refused, CheckpointSaved> answer;
};
// The job's end is durable, so the shell may tell the clients that wait for it.
struct JobEnded {
  JobId job;
};
// A line for the log. `level` as in LogLine.
struct Note {
  std::uint8_t level = 2;
  std::string text;
  std::string kind{};                   // which kind of event the line reports (docs/json.md). "": an ordinary line
  std::string job{};                    // its name; "": of no job
  std::optional<std::uint64_t> step{};  // of that job
};

using Action = std::variant<Listen, Admit, RefuseTask, Disconnect, Send, Probe, Persist, FolderWork, CloseFolder,
                            AnswerClient, JobEnded, Note>;
using Actions = std::vector<Action>;

}  // namespace disttrain::chiefd
