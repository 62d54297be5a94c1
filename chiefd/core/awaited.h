// What a job waits for, task by task. Sentences are made from this; nobody needs to read it out of a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

enum class AwaitedFor : std::uint8_t {
  kHello,        // it isn't there: a process has to take its place
  kHeartbeat,    // it is silent
  kLink,         // the chief hears it, but it can't reach a task that it needs, or most workers can't reach it
  kDescription,  // it reads the data and builds the model
  kShards,       // it makes its shards
  kOpen,         // it opens the job
  kRoster,       // the pacer takes the roster
  kReport,       // the pacer says how far the job is
  kCheckpoint,   // it was told to end, and its shards are saved first
  kStepEnd,      // the job is being stopped, and it ends the step that it is in
  kEvaluation,
  kClose,
};
// "hello", "heartbeat", "description", ...: docs/json.md.
const char* to_string(AwaitedFor what);

struct Awaited {
  std::optional<TaskId> task;  // none: any workers beside those that are there
  AwaitedFor what = AwaitedFor::kHello;
  Instant since;
  std::size_t count = 1;  // of workers, where no task is named

  bool operator==(const Awaited&) const = default;
};

// "ps/0, worker/1, 2 more workers".
std::string to_string(const std::vector<Awaited>& awaited);

}  // namespace disttrain::chiefd
