// The core's status, read only. The shell renders it as JSON (chiefd/status_json.h) and in its log.
#pragma once

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

// kWaiting: no process has said hello yet. kRunning: ready, and used by the current job. kLeft: it went while in no
// job, or in good order.
enum class TaskState : std::uint8_t { kWaiting, kReady, kRunning, kSilent, kDead, kLeft };
const char* to_string(TaskState state);

// Lost processes of a task, by how they were lost.
struct Losses {
  std::uint64_t crash = 0;     // gone while in a job
  std::uint64_t silent = 0;    // silent before it was gone
  std::uint64_t left = 0;      // gone while in no job, or told to end
  std::uint64_t replaced = 0;  // another process took its place
};

// Figures of one task in one job.
struct TaskFigures {
  std::uint64_t step = 0;
  PhaseTimes phase_times;                     // workers
  std::vector<ShardLoad> shards;              // ps
  std::optional<double> examples_per_second;  // a worker's, see ExampleRate
  std::optional<double> loss;                 // of a worker's last batch; none before the first
  // How far the task is behind the furthest task of its role in this generation, by their last heartbeats: a worker in
  // own steps, a ps in versions. None: the task isn't in the generation, or hasn't stepped.
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
  std::string reason;
  std::optional<Duration> heartbeat_age;  // none: never heard of
  Phase phase = Phase::kIdle;             // of the last heartbeat
  Duration in_phase{};
  Losses losses;        // as far as this chief knows
  TaskFigures figures;  // of a job that ended: those of its end
};

// What a job is doing; Goodput divides its time by this.
enum class JobPart : std::uint8_t {
  kNone,        // waits for its turn, or ends
  kInit,        // until its first step
  kTrain,       // until the last
  kCheckpoint,  // takes the last checkpoint, or the one before a ps leaves
  kRestore,     // from a loss, or another chief's start, to the first step after it
  kEvaluate,    // the final evaluation
};

// Figures of a job's checkpoints since this chief started. Seconds are those of the slowest shard.
struct CheckpointFigures {
  SecondsHistogram cut;
  SecondsHistogram park;
  SecondsHistogram write;
  SecondsHistogram commit;
  SecondsHistogram restore;       // until all shards are made from a checkpoint
  std::uint64_t bytes = 0;        // of the newest
  std::uint64_t failures = 0;     // failed attempts, without those that a lost task or the job's end cut short
  std::optional<Duration> age{};  // since the last one was committed
};

struct JobStatus {
  Instant as_of;
  JobId job;
  std::string name;
  Mode mode = Mode::kAsync;
  JobState state = JobState::kQueued;
  std::string reason;
  std::vector<Awaited> waits_for;
  Generation generation;
  std::uint32_t recoveries = 0;
  std::string checkpoint;  // path of the newest; "": none
  std::uint64_t global_step = 0;
  std::uint64_t steps_target = 0;  // 0 = none
  double seconds = 0.0;            // from the first applied step (or the last of warm-up) to the last, no evaluations
  double steps_per_second = 0.0;
  double examples_per_second = 0.0;
  std::uint64_t examples = 0;
  std::optional<double> loss;           // none: no step since the job began
  std::optional<double> learning_rate;  // of the next update; none: the pacer hasn't reported it
  std::uint32_t epoch = 0;              // complete ones
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
  double staleness = 0.0;
  std::optional<EvaluationStatus> evaluation;  // the newest
  std::optional<ErrorCode> code;               // failed before it opened
  std::optional<RootCause> root_cause;
  std::vector<std::string> warnings;
  JobPart part = JobPart::kNone;
  std::optional<Duration> progress_age;  // since this chief heard of the newest step; none: no step yet
  std::uint64_t steps_lost = 0;          // by rollbacks, as far as this chief knows
  std::uint64_t examples_heard = 0;      // applied since this chief took the job over, even if rolled back later
  CheckpointFigures checkpoints;
  std::string checkpoint_directory;  // "": none are taken
  Duration checkpoint_every{};       // 0: not by time
  std::vector<TaskStatus> tasks;
};

}  // namespace disttrain::chiefd
