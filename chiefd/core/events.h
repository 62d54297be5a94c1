// The inputs and outputs of the chief's core. Events say what has happened; actions say what to do, in order. A slow
// action (Persist) carries a ticket and comes back as an event (Persisted). The core issues actions that depend on it
// only then.
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

// A connected client, such as the command line; the shell gives the numbers.
using ClientId = StrongId<struct ClientIdTag, std::uint64_t>;
using Ticket = StrongId<struct TicketTag, std::uint64_t>;

using FromTask = std::variant<JobDescribed, ShardsCreated, JobOpened, RosterApplied, LeaseRequest, WorkerFenced,
                              WorkerFinished, Evaluated, JobClosed, TaskFailed, Accusation, Heartbeat,
                              CheckpointPrepared, ShardWritten, CheckpointFailed, LeaveRequest>;
using ToTask = std::variant<DescribeJob, CreateShards, OpenJob, StartJob, SetRoster, FenceWorker, LeaseGrant, StopJob,
                            SetEvaluator, Evaluate, CloseJob, HeartbeatAnswer, PauseJob, PrepareCheckpoint, TakeCut,
                            MarkChannels, AbandonCheckpoint, LeaveGranted>;

// A job as it was submitted: its text, and the parsed configuration.
struct Submission {
  std::string toml;
  JobConfig config;
  std::uint64_t warmup_steps = 0;
  std::uint32_t awaited_workers = 0;  // the job doesn't begin with fewer; later only job.min_workers counts
};

// ---- events

struct TaskJoined {
  TaskHello hello;
  std::string peer_host{};  // where its connection comes from: "10.0.0.2", "[::1]"; "": not known
};
struct ConnectionLost {
  Member member;
  std::string why;
};
struct TaskMessage {
  Member from;
  FromTask message;
};
// kRefused proves that no process listens there. kNoAnswer proves nothing.
enum class ProbeOutcome { kAnswered, kRefused, kNoAnswer };
struct ProbeDone {
  Member member;
  ProbeOutcome outcome = ProbeOutcome::kNoAnswer;
  Member answered_by{};  // kAnswered: the process there; incarnation 0: it didn't say
};
struct Submit {
  ClientId client;
  Submission submission;
  bool goes_on = false;  // if the same job is unended, this means that job
};
struct Stop {
  ClientId client;
  std::string job;  // number or name, "" = the current one
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

// A checkpoint that the shards can begin with.
struct RestorePoint {
  std::string path;
  Generation generation;
  Step step;
  PacerReport pacer;
  std::uint64_t records = 0;             // in an epoch; 0: not known
  std::map<TaskId, Step> worker_clocks;  // own steps that each worker had done
  std::uint64_t bytes = 0;               // of its shards' files
};
// The result of FolderWork.
struct FolderAnswer {
  std::optional<RestorePoint> newest;  // OpenFolder, FindNewest
  Generation newest_generation;        // of all checkpoints there, readable or not
  std::uint64_t mark = 0;              // the number in the folder; a ps that finds it sees the same folder
  std::vector<std::string> broken;     // what was set aside or is gone, and why
  std::string path;                    // BeginAttempt: its folder; CommitAttempt, FindInit: the checkpoint
  std::string warning;                 // the work is done, except for this
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
// At least every Timeouts::interval.
struct Tick {};

using Event = std::variant<TaskJoined, ConnectionLost, TaskMessage, ProbeDone, Submit, chiefd::Stop, Save, Persisted,
                           FolderDone, Reconfigured, Tick>;

// ---- actions

// The chief's term is durable: the shell may accept connections.
struct Listen {};
// Answers TaskJoined: the connection is this member's from now on.
struct Admit {
  Member member;
};
struct RefuseTask {
  Member member;
  Refused refused;
};
// Close this member's connection, if there is one.
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
// FolderWork: slow work on a job's checkpoint folder. The shell does one at a time and answers with FolderDone.
struct OpenFolder {  // takes its lock; kConfig: another live job holds it, or it isn't empty but must be
  std::string directory;
  std::string name;
  bool must_be_empty = false;
  std::uint64_t mark = 0;  // written into the folder, for the ps tasks to find; no secret
  std::string committed;   // the newest that is known of; kFailed, and nothing is made: there is none at all
};
struct FindNewest {
  std::uint64_t mark = 0;
  std::string committed;
};
// Finds the first parameters. If the path is a job's folder: its newest checkpoint, which is then protected from
// removal. A path that names no checkpoint, or that the chief can't see, is left to the ps tasks.
struct FindInit {
  std::string path;
};
struct SetAside {  // sets a damaged checkpoint aside; then like FindNewest
  std::string path;
  std::uint64_t mark = 0;
};
struct BeginAttempt {
  Generation generation;
  std::uint64_t attempt = 0;
};
struct CommitAttempt {  // then removes old checkpoints
  JobConfig config;
  std::string job_toml;
  Layout layout;
  std::uint64_t records = 0;
  Generation generation;
  std::uint64_t attempt = 0;
  std::vector<ShardWritten> shards;  // by shard
};
struct FolderWork {
  JobId job;
  Ticket ticket;
  std::variant<OpenFolder, FindNewest, FindInit, SetAside, BeginAttempt, CommitAttempt> work;
};
// Drops the folder's lock. No answer.
struct CloseFolder {
  JobId job;
};

struct AnswerClient {
  ClientId client;
  std::variant<JobSubmitted, RequestDone, Refused, CheckpointSaved> answer;
};
// The job's end is durable: clients that wait for it may be told.
struct JobEnded {
  JobId job;
};
// A line for the log. `level` as in LogLine.
struct Note {
  std::uint8_t level = 2;
  std::string text;
  std::string kind{};                   // of an event, as in EventRecord; "": none
  std::string job{};                    // its name; "": of no job
  std::optional<std::uint64_t> step{};  // of that job
};

using Action = std::variant<Listen, Admit, RefuseTask, Disconnect, Send, Probe, Persist, FolderWork, CloseFolder,
                            AnswerClient, JobEnded, Note>;
using Actions = std::vector<Action>;

}  // namespace disttrain::chiefd
