// A task, or a number of workers, for which a job waits. The status lists these values for programs. Its sentences for
// people are made from the same values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

enum class AwaitedFor : std::uint8_t {
  kHello,        // no process that may take work is connected in this place, so one must say hello
  kHeartbeat,    // the task is silent
  kLink,         // the task can't reach another task that it needs, or most workers can't reach the task
  kDescription,  // the worker reads the data and builds the model
  kShards,       // the ps makes its shards
  kOpen,         // the worker opens the job
  kRoster,       // the pacer takes the roster
  kReport,       // the pacer reports the job's step
  kCheckpoint,   // the ps was told to end, and a checkpoint is taken before it ends
  kStepEnd,      // the job is being stopped, and the worker finishes its current step
  kEvaluation,
  kClose,
};
// "hello", "heartbeat", "description", ... docs/json.md lists all of them.
const char* to_string(AwaitedFor what);

struct Awaited {
  std::optional<TaskId> task;  // none: the job waits for any `count` more workers
  AwaitedFor what = AwaitedFor::kHello;
  Instant since;
  std::size_t count = 1;  // the number of workers, if `task` is none

  bool operator==(const Awaited&) const = default;
};

// The job can't go on because tasks of this role (kPs or kWorker) are away. See job/rules/absences.h.
struct Absence {
  Role role = Role::kPs;
  Instant since;                  // for workers: or when a worker that may join has last made progress
  std::optional<Duration> limit;  // after this time the job fails. None: it waits until the tasks are back

  bool operator==(const Absence&) const = default;
};

// "ps/0, worker/1, 2 more workers".
std::string to_string(const std::vector<Awaited>& awaited);

}  // namespace disttrain::chiefd
