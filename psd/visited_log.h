// A debug mode: which records each step of a job visited, for tests that prove "each record once an epoch" while
// daemons are killed. On where the environment of psd has DISTTRAIN_VISITED_LOG=<folder>, which must exist; off, it
// costs nothing.
//
// <folder>/job-<id>.jsonl is appended to by the pacer of each generation of the job, one JSON object per line:
//   {"generation": 2, "begins_after": 500}    the generation goes on from this step (0: the initial values)
//   {"generation": 2, "step": 501, "visits": [{"worker": "worker/0", "epoch": 0, "positions": [[50, 100]]}]}
// Positions are half-open intervals of the epoch's permutation. Each line leaves in one write(2), so that a SIGKILL
// loses none; a step's line is written before any answer, report or checkpoint that includes it. So a line is missing
// only for a step of which nobody has heard, and that is lost with the process. What remains of the history: of each
// generation the steps up to the smallest `begins_after` of all later generations.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "psd/core/events.h"

namespace disttrain::psd {

// Of one generation. Movable; not thread-safe.
class VisitedLog {
 public:
  // That the environment names; "": no log is wanted.
  static std::string folder();

  // Opens the job's file and writes the generation's first line. kConfig: it can't.
  static Result<VisitedLog> begin(const std::string& folder, JobId job, Generation generation, Step begins_after);
  VisitedLog(VisitedLog&& other) noexcept;
  VisitedLog& operator=(VisitedLog&&) = delete;
  ~VisitedLog();

  // kUnavailable: the line isn't (wholly) written, so that the log proves nothing any more.
  Status add(const StepCounted& counted);

 private:
  VisitedLog(std::string path, int file, Generation generation)
      : path_(std::move(path)), file_(file), generation_(generation) {}
  Status write(const std::string& line);

  const std::string path_;
  int file_;  // -1: moved from
  const Generation generation_;
  std::string line_;  // kept for its memory
};

}  // namespace disttrain::psd
