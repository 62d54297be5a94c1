// What the core tells of itself, read only. The shell renders it: as JSON (chiefd/status_json.h), and in its log.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::chiefd {

// waiting: hasn't said hello yet. running: ready, and used by the current job. left: went while it was in no job, or
// in good order.
enum class TaskState : std::uint8_t { kWaiting, kReady, kRunning, kSilent, kDead, kLeft };
const char* to_string(TaskState state);

struct TaskStatus {
  TaskId task;
  std::uint32_t pid = 0;
  std::string address;
  std::string host;
  TaskState state = TaskState::kWaiting;
  std::string reason;
  std::uint64_t step = 0;
  std::optional<Duration> heartbeat_age;  // none: never heard of
  Phase phase = Phase::kIdle;
  Duration in_phase{};
  PhaseTimes phase_times;  // workers
};

struct JobStatus {
  JobId job;
  std::string name;
  Mode mode = Mode::kAsync;
  JobState state = JobState::kQueued;
  std::string reason;
  Generation generation;
  std::uint32_t recoveries = 0;
  std::string checkpoint;  // path of the newest; "": none
  std::uint64_t global_step = 0;
  std::uint64_t steps_target = 0;  // 0 = none
  double seconds = 0.0;            // from the first applied step (or the last of warm-up) to the last, no evaluations
  double steps_per_second = 0.0;
  double examples_per_second = 0.0;
  std::uint64_t examples = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t epoch = 0;  // complete ones
  std::uint64_t late = 0;
  std::uint64_t skipped = 0;
  double staleness = 0.0;
  std::optional<EvaluationStatus> evaluation;  // the newest
  std::optional<ErrorCode> code;               // failed before it opened
  std::optional<RootCause> root_cause;
  std::vector<std::string> warnings;
  std::vector<TaskStatus> tasks;
};

}  // namespace disttrain::chiefd
