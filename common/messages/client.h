// Between the command line and the chief. A request is answered by its answer or by Refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages/control.h"

namespace disttrain {

struct SubmitJob {
  std::string job_toml;               // whole and with absolute paths; --set already applied
  std::uint64_t warmup_steps = 0;     // bench: steps that aren't measured
  bool goes_on = false;               // `up`: where the same job hasn't ended, that one is meant, and not another
  std::uint32_t awaited_workers = 0;  // `up`: the job begins once so many are there, as it starts them itself
};

struct JobSubmitted {
  JobId job;
  std::uint32_t ahead = 0;  // jobs that run or wait before it
  bool was_there = false;   // it goes on
};

// `job`: number or name; "" = the running one, else the last.
struct StatusRequest {
  std::string job;
  bool all = false;
  // Answered when the job has ended, at the latest after this time; zero: at once.
  Duration wait_for_end{};
};

// JSON as `disttrain status --json` prints it: docs/json.md.
struct StatusAnswer {
  std::string json;
};

struct StopRequest {
  std::string job;
  bool kill = false;  // don't wait for a push boundary, no final evaluation
};

struct RequestDone {};

// Answered by LogLines, more of them as they arise with `follow`.
struct LogsRequest {
  std::string job;
  std::vector<TaskId> tasks;  // empty = all
  std::uint8_t level = 0;     // at least
  std::int64_t since_wall_nanoseconds = 0;
  bool follow = false;
};

// A checkpoint now. Answered when it is committed.
struct SaveRequest {
  std::string job;
};

struct CheckpointSaved {
  std::string path;
  Step step;
};

// Answered by EventsAnswer, with `follow` by more of them as events arise.
struct EventsRequest {
  std::string job;  // "" = the running one, else the last; with `all` of every job and of none
  bool all = false;
  bool follow = false;
  std::uint32_t most = 0;  // of those that the chief remembers, the newest; 0 = all
};

// A JSON list as `disttrain events --json` prints it: docs/json.md.
struct EventsAnswer {
  std::string json;
};

}  // namespace disttrain
