// Messages between the command line and the chief. A request gets its answer or Refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages/control.h"

namespace disttrain {

struct SubmitJob {
  std::string job_toml;               // whole, with absolute paths; --set already applied
  std::uint64_t warmup_steps = 0;     // bench: steps not to measure
  bool goes_on = false;               // `up`: if the same job hasn't ended, continue that job
  std::uint32_t awaited_workers = 0;  // `up`: the job begins once this many are there, since `up` starts them
};

struct JobSubmitted {
  JobId job;
  std::uint32_t ahead = 0;  // jobs that run or wait before it
  bool was_there = false;   // the job was there already and goes on
};

// `job`: number or name; "" = the running job, else the last one.
struct StatusRequest {
  std::string job;
  bool all = false;
  // The answer comes when the job has ended, at the latest after this time; zero: at once.
  Duration wait_for_end{};
};

// JSON as `disttrain status --json` prints it: docs/json.md.
struct StatusAnswer {
  std::string json;
};

struct StopRequest {
  std::string job;
  bool kill = false;  // don't wait for the current push, and skip the final evaluation
};

struct RequestDone {};

// Answered by LogLines; with `follow`, by more of them as lines are written.
struct LogsRequest {
  std::string job;
  std::vector<TaskId> tasks;  // empty = all
  std::uint8_t level = 0;     // lowest level
  std::int64_t since_wall_nanoseconds = 0;
  bool follow = false;
};

// Take a checkpoint now. Answered when it is committed.
struct SaveRequest {
  std::string job;
};

struct CheckpointSaved {
  std::string path;
  Step step;
};

// Answered by EventsAnswer; with `follow`, by more of them as events happen.
struct EventsRequest {
  std::string job;  // "" = the running job, else the last one; `all`: events of every job and of no job
  bool all = false;
  bool follow = false;
  std::uint32_t most = 0;  // the newest events that the chief remembers, at most this many; 0 = all
};

// A JSON list as `disttrain events --json` prints it: docs/json.md.
struct EventsAnswer {
  std::string json;
};

}  // namespace disttrain
