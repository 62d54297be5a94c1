// All events of one job's trace, as the chief has collected them (trace_collector.h). trace_json.h writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/messages/trace.h"
#include "common/time.h"

namespace disttrain::chiefd {

// The events of one task, in the task's own time.
struct TaskTrace {
  TaskId task;
  std::optional<ClockOffset> clock;  // none: the task knew no offset, and its times are taken as they are
  std::uint64_t dropped = 0;         // how many events the task has dropped for want of room
  bool is_whole = false;             // false: not all pieces have come
  std::vector<TraceEvent> events;
};

// An event of the chief: a moment, or the time of a checkpoint attempt.
struct ChiefEvent {
  Instant begin{};
  Instant end{};
  std::string name;  // such as "worker_lost"
  std::string text;  // a sentence; may be ""
  std::uint64_t step = 0;
};

struct TraceBook {
  JobId job;
  std::string name;  // of the job
  Mode mode = Mode::kAsync;
  std::array<std::uint64_t, 2> steps{};  // TrainSection::profile_steps
  std::string folder;                    // of the file
  std::vector<TaskTrace> tasks;          // in the order of their names
  std::vector<TaskId> missing;           // the tasks whose events didn't come, or not all of them
  std::vector<ChiefEvent> chief;
  std::uint64_t dropped = 0;  // how many events the chief has dropped for want of room

  // False: no task has sent an event, so there is nothing to write.
  bool has_events() const {
    return std::any_of(tasks.begin(), tasks.end(), [](const TaskTrace& trace) { return !trace.events.empty(); });
  }
};

}  // namespace disttrain::chiefd
