// What a job waits for, task by task. Programs read this value; the sentences of the status are made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

enum class AwaitedFor : std::uint8_t {
  kHello,        // the task isn't connected: a process has to say hello
  kHeartbeat,    // the task is silent
  kLink,         // the task can't reach a task that it needs, or most workers can't reach it
  kDescription,  // the worker reads the data and builds the model
  kShards,       // the ps makes its shards
  kOpen,         // the worker opens the job
  kRoster,       // the pacer takes the roster
  kReport,       // the pacer reports the job's step
  kCheckpoint,   // the ps was told to end, and its shards are saved first
  kStepEnd,      // the job is being stopped, and the worker finishes its step
  kEvaluation,
  kClose,
};
// "hello", "heartbeat", "description", ...: docs/json.md.
const char* to_string(AwaitedFor what);

struct Awaited {
  std::optional<TaskId> task;  // none: any `count` workers more
  AwaitedFor what = AwaitedFor::kHello;
  Instant since;
  std::size_t count = 1;  // of workers, if `task` is none

  bool operator==(const Awaited&) const = default;
};

// "ps/0, worker/1, 2 more workers".
std::string to_string(const std::vector<Awaited>& awaited);

}  // namespace disttrain::chiefd
