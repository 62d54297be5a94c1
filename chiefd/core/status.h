// The core's status as plain values. The shell writes it as JSON (chiefd/status_json.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/journal_state.h"
#include "common/config/job_config.h"
#include "common/histogram.h"
#include "common/ids.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::chiefd {

// The state of a task. kWaiting: no process has said hello yet. kRunning: the task is ready, and the current job uses
// it. kBusy: the worker is ready, but still holds a job that has ended. kLeft: the process went away while it was in no
// job, or it left in good order. Tasks never has kRunning and kBusy; the status has them instead of kReady.
enum class TaskState : std::uint8_t { kWaiting, kReady, kRunning, kBusy, kSilent, kDead, kLeft };
const char* to_string(TaskState state);

// How many processes of a task were lost in each way.
struct Losses {
  std::uint64_t crash = 0;     // the process went away while it was in a job
  std::uint64_t silent = 0;    // the process was silent before it went away
  std::uint64_t left = 0;      // the process went away while it was in no job, or because it was told to end
  std::uint64_t replaced = 0;  // another process took the place
};

// Figures of one task in one job.
struct TaskFigures {
  std::uint64_t step = 0;
  PhaseTimes phase_times;                     // workers
  DataTimes data_times;                       // workers
  std::vector<ShardLoad> shards;              // ps
  std::optional<double> examples_per_second;  // a worker's, see ExampleRate
  std::optional<double> loss;                 // the loss of a worker's last batch. None before its first batch
  // How far the task is behind the furthest task of its role in this generation, by their last heartbeats. For a worker
  // this is a number of its own steps, and for a ps a number of versions. None: the task isn't in the generation, or
  // hasn't made a step.
  std::optional<std::uint64_t> lag;
};

struct TaskStatus {
  TaskId task;
  bool is_listed = true;  // in the cluster file
  std::uint32_t pid = 0;
  std::string address;
  std::string host;
  std::string metrics;  // host:port; "": none
  TaskState state = TaskState::kWaiting;
  // Of a worker that takes part in the job, or took part in it at its end, if this chief has seen the end.
  std::optional<std::uint32_t> rank;
  std::string reason;
  std::optional<Duration> heartbeat_age;  // none: the task has never sent anything
  Phase phase = Phase::kIdle;             // of the last heartbeat
  Duration in_phase{};
  Losses losses;        // the losses that this chief knows of
  TaskFigures figures;  // in the status of an ended job: the figures at the end of that job
};

// JobPart names the current activity of a job. Goodput accounts for the job's time by these values.
enum class JobPart : std::uint8_t {
  kNone,        // the job waits for its turn, or is ending
  kInit,        // the job hasn't made its first step yet
  kTrain,       // the job makes steps
  kCheckpoint,  // all workers wait for the last checkpoint, or for the checkpoint before a ps leaves
  kRestore,     // the job had a loss, or another chief has started, and no step has followed yet
  kEvaluate,    // the final evaluation
};

// Figures of a job's checkpoints since this chief started. The times `cut`, `park` and `write` are those of the slowest
// shard.
struct CheckpointFigures {
  SecondsHistogram cut;
  SecondsHistogram park;
  SecondsHistogram write;
  SecondsHistogram commit;
  SecondsHistogram restore;  // from the order to create the shards until all were restored from a checkpoint
  std::uint64_t bytes = 0;   // the size of the newest checkpoint
  // The number of failed attempts. An attempt that ended because a task was lost, or because the job ended, doesn't
  // count.
  std::uint64_t failures = 0;
  std::optional<Duration> age{};  // the time since the last checkpoint was committed
};

struct JobStatus {
  Instant as_of;
  JobId job;
  std::string name;
  Mode mode = Mode::kAsync;
  JobState state = JobState::kQueued;
  std::string reason;
  std::vector<Awaited> waits_for;
  std::vector<Absence> absences;        // the tasks that are away and without which the job can't go on
  std::optional<JobId> resubmitted_as;  // the job that goes on with this one. None: there is none
  Generation generation;
  std::uint32_t recoveries = 0;
  std::string checkpoint;  // path of the newest; "": none
  std::uint64_t global_step = 0;
  std::uint64_t steps_target = 0;  // 0 = none
  // The time from the first applied step (or the last step of warm-up) to the last applied step, without evaluations.
  double seconds = 0.0;
  double steps_per_second = 0.0;
  double examples_per_second = 0.0;
  std::uint64_t examples = 0;
  std::optional<double> loss;  // none: the job hasn't made a step yet
  // The training metrics: of each metric the mean over the job's workers, each with its newest steps. Empty if the
  // workers report none.
  std::vector<MetricValue> metrics;
  std::optional<double> learning_rate;  // the rate of the next update. None: the pacer hasn't reported it
  std::uint32_t epoch = 0;              // the number of complete epochs
  Wires wires = 0;                      // how the workers are connected to the shards; 0: not known
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
  double staleness = 0.0;
  std::optional<EvaluationStatus> evaluation;  // the newest
  std::vector<BestCheckpoint> best;            // the checkpoints that evaluate.keep_best keeps, the best one first
  std::uint64_t evaluations_waiting = 0;       // checkpoints that wait for an evaluator
  std::optional<ErrorCode> code;               // the error code of a job that failed before it had opened
  std::optional<RootCause> root_cause;
  std::vector<std::string> warnings;
  JobPart part = JobPart::kNone;
  // The time since this chief heard of the newest step. None: this chief hasn't heard of a step.
  std::optional<Duration> progress_age;
  // The number of steps that rollbacks have undone, as far as this chief knows.
  std::uint64_t steps_lost = 0;
  // The number of examples that were applied since this chief took the job over. Examples that a rollback has undone
  // count too.
  std::uint64_t examples_heard = 0;
  CheckpointFigures checkpoints;
  std::string checkpoint_directory;              // "": none are taken
  Duration checkpoint_every{};                   // 0: not by time
  Duration stall_timeout{};                      // JobSection::stall_timeout
  std::array<std::uint64_t, 2> profile_steps{};  // TrainSection::profile_steps
  std::string trace;                             // path of the newest trace that this chief has written; "": none
  bool is_trace_pending = false;                 // the shell collects or writes a trace. The shell sets this
  std::vector<TaskStatus> tasks;
};

}  // namespace disttrain::chiefd
