// A debug mode for tests: logs which records each step of a job visited. The tests kill daemons, and prove from the log
// that each record was visited once per epoch. The mode is on if psd's environment variable DISTTRAIN_VISITED_LOG names
// an existing folder. If it is off, it costs nothing.
//
// The pacer appends to the file <folder>/job-<id>.jsonl, one JSON object per line. The first line of each generation
// names the step from which the generation goes on (0: the initial values). Each later line describes one step:
//   {"generation": 2, "begins_after": 500}
//   {"generation": 2, "step": 501, "visits": [{"worker": "worker/0", "epoch": 0, "positions": [[50, 100]]}]}
// Positions are half-open intervals of the epoch's order. The pacer writes each line with one write(2), so that a
// SIGKILL can't cut a line in two. It writes a step's line before it sends any answer, report or checkpoint that
// includes the step. So if a step's line is missing, the process died before anybody heard of the step, and the step is
// lost too.
//
// A rollback undoes steps that are in the log. So a step doesn't count if its number is above the `begins_after` of a
// later generation. For example, if generation 2 begins after step 500, then step 501 of generation 1 doesn't count.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "shards/core/events.h"

namespace disttrain::shards {

// The log of one generation. Movable; not thread-safe.
class VisitedLog {
 public:
  // The folder that the environment variable names; "" if it isn't set.
  static std::string folder();

  // Opens the job's file and writes the generation's first line. kConfig: the file can't be opened.
  static Result<VisitedLog> begin(const std::string& folder, JobId job, Generation generation, Step begins_after);
  VisitedLog(VisitedLog&& other) noexcept;
  VisitedLog& operator=(VisitedLog&&) = delete;
  ~VisitedLog();

  // Appends the line of a step. kUnavailable: the line is missing or incomplete, so the log no longer proves anything.
  Status add(const StepCounted& counted);

 private:
  VisitedLog(std::string path, int file, Generation generation)
      : path_(std::move(path)), file_(file), generation_(generation) {}
  Status write(const std::string& line);

  const std::string path_;
  int file_;  // -1 after a move
  const Generation generation_;
  std::string line_;  // the line that is being made; a member so that its memory is reused
};

}  // namespace disttrain::shards
