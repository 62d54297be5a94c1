// Counts for each job how often a chief crashed while it worked for this job. A job that has crashed the chief would
// crash it again after each restart. So the chief fails a job with kMostCrashes crashes, and serves the others.
//
// The book is the file "crashes" in the state directory. Its first line is "journal ID". Each further line is the
// number of a job. The handler of a crash adds a line (common/daemon/crash.h). A chief that was killed, or whose host
// has failed, adds none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/ids.h"
#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::chiefd {

class CrashBook {
 public:
  // Call this only while the state directory's journal is locked. `journal` is this journal's id. A book of another
  // journal is emptied, because its numbers are those of other jobs. A book that can't be opened or read is no reason
  // not to start: then no crash is counted.
  static Result<CrashBook> open(const std::string& state_directory, JournalId journal);

  const std::map<JobId, std::uint32_t>& crashes() const { return crashes_; }
  // The file to which a crash adds its line.
  int file() const { return file_.get(); }

 private:
  explicit CrashBook(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
  std::map<JobId, std::uint32_t> crashes_;
};

}  // namespace disttrain::chiefd
