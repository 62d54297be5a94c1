// Remembers which workers have failed by a fault of their own, such as an exception in a trainer. If each worker fails
// in the same way, so would every other try. Faults decides nothing: suspicions.h does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/ids.h"
#include "common/messages/session.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::chiefd {

// Names the fault of a worker that has failed for this reason (TaskFailed). If its trainer has ended with a Python
// traceback: the exception and the line that raised it, such as "ValueError at /job/train.py:10 in <module>". For
// another failure of code kFailed: the reason's first line. Otherwise "": another task may be the cause. Without values
// that differ from worker to worker, and at most 500 bytes long.
std::string fault_of(ErrorCode code, const std::string& reason);

class Faults {
 public:
  enum class Verdict {
    kFirst,        // the worker may do better in another try
    kAgain,        // the worker has failed in this way twice, without a step between
    kEveryWorker,  // each worker has failed in this way, and there were at least two such failures
  };
  // Notes that the worker has failed by this fault (fault_of()). `living`: the workers that take part, with or
  // without this one. A failure counts until the worker makes a step as another member, for at most `window`.
  Verdict note(Instant now, const Member& worker, const std::string& fault, const std::set<TaskId>& living,
               Duration window);
  // The worker has made so many steps since it joined.
  void note_steps(const Member& worker, std::uint64_t steps);

 private:
  struct Entry {
    Member member;
    std::string fault;
    std::size_t times = 0;  // in a row
    Instant at;
  };
  std::map<TaskId, Entry> entries_;
};

}  // namespace disttrain::chiefd
