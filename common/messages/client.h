// Messages between the command line and the chief. The chief answers a request with the matching answer, or
// with Refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/messages/control.h"

namespace disttrain {

struct SubmitJob {
  std::string job_toml;               // the whole job file with absolute paths and with every --set applied
  std::uint64_t warmup_steps = 0;     // `bench`: the first steps, which aren't measured
  bool goes_on = false;               // `up`: if the same job is still queued or running, continue that job
  std::uint32_t awaited_workers = 0;  // `up` starts this many workers: the job waits for them before it begins
};

struct JobSubmitted {
  JobId job;
  std::uint32_t ahead = 0;  // number of jobs that run or wait before this one
  bool was_there = false;   // the job already existed and continues
};

// `job` is a job's number or name. "" means the running job or, if none runs, the job that ran last.
struct StatusRequest {
  std::string job;
  bool all = false;
  // The chief answers when the job has ended, but at the latest after this time. Zero means at once.
  Duration wait_for_end{};
};

// JSON as `disttrain status --json` prints it; see docs/json.md.
struct StatusAnswer {
  std::string json;
};

struct StopRequest {
  std::string job;
  bool kill = false;  // don't wait for the current push, and skip the final evaluation
};

// Submits a job that has failed or was stopped again, with the same file. The chief answers with JobSubmitted.
struct ResubmitRequest {
  std::string job;
};

struct RequestDone {};

// The chief answers with LogLines. With `follow`, it sends further LogLines as lines are written.
struct LogsRequest {
  std::string job;
  std::vector<TaskId> tasks;  // empty = all
  std::uint8_t level = 0;     // lowest level
  std::int64_t since_wall_nanoseconds = 0;
  bool follow = false;
};

// Asks for a checkpoint now. The chief answers when the checkpoint is committed.
struct SaveRequest {
  std::string job;
};

struct CheckpointSaved {
  std::string path;
  Step step;
};

// The chief answers with EventsAnswer. With `follow`, it sends further ones as events happen.
struct EventsRequest {
  // "" = the running job or, if none runs, the job that ran last. `all` means every event, even one without a job
  std::string job;
  bool all = false;
  bool follow = false;
  std::uint32_t most = 0;  // at most this many of the newest events; 0 = all that the chief remembers
};

// A JSON list as `disttrain events --json` prints it; see docs/json.md.
struct EventsAnswer {
  std::string json;
};

}  // namespace disttrain
