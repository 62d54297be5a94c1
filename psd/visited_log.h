// A debug mode: logs which records each step of a job visited, for tests that prove "each record once an epoch" while
// daemons are killed. It is on if the environment of psd has DISTTRAIN_VISITED_LOG=<folder>, which must exist. Off, it
// costs nothing.
//
// <folder>/job-<id>.jsonl is appended to by the pacer of each generation of the job, one JSON object per line:
//   {"generation": 2, "begins_after": 500}    the generation goes on from this step (0: the initial values)
//   {"generation": 2, "step": 501, "visits": [{"worker": "worker/0", "epoch": 0, "positions": [[50, 100]]}]}
// Positions are half-open intervals of the epoch's permutation. Each line is one write(2), so that a SIGKILL loses
// none. A step's line is written before any answer, report or checkpoint that includes it. So only a step that nobody
// heard of can lack its line, and that step is lost with the process. The job's history is, of each generation, the
// steps up to the smallest `begins_after` of all later generations.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/result.h"
#include "psd/core/events.h"

namespace disttrain::psd {

// The log of one generation. Movable; not thread-safe.
class VisitedLog {
 public:
  // The folder that the environment names; "": no log is wanted.
  static std::string folder();

  // Opens the job's file and writes the generation's first line. kConfig: the file can't be opened.
  static Result<VisitedLog> begin(const std::string& folder, JobId job, Generation generation, Step begins_after);
  VisitedLog(VisitedLog&& other) noexcept;
  VisitedLog& operator=(VisitedLog&&) = delete;
  ~VisitedLog();

  // kUnavailable: the line is missing or incomplete, so the log no longer proves anything.
  Status add(const StepCounted& counted);

 private:
  VisitedLog(std::string path, int file, Generation generation)
      : path_(std::move(path)), file_(file), generation_(generation) {}
  Status write(const std::string& line);

  const std::string path_;
  int file_;  // -1 after a move
  const Generation generation_;
  std::string line_;  // kept so that its memory is reused
};

}  // namespace disttrain::psd
