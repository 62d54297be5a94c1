// Remembers which workers have failed by a fault of their own, such as an exception in a trainer. If each worker fails
// in the same way, so would every other try. Faults decides nothing: chiefd/core/job/rules/failures.h does.
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

struct Fault {
  // Without values that differ from worker to worker, and at most 500 bytes long. "": none is known.
  std::string what;
  bool is_own = false;  // false: another task may be the cause

  bool operator==(const Fault&) const = default;
};

// The fault of a worker that has failed for this reason (TaskFailed). If its trainer has ended with a Python traceback:
// the exception and the line that raised it, such as "ValueError at /job/train.py:10 in <module>". If the trainer has
// crashed, and Python has printed where: its signal and that line. For another failure of code kFailed: the reason's
// first line. If the trainer has ended by itself or crashed without a word: its exit code or signal, and then another
// task may be the cause.
Fault fault_of(ErrorCode code, const std::string& reason);

class Faults {
 public:
  enum class Verdict {
    kFirst,        // the worker may do better in another try
    kAgain,        // the worker has failed in this way twice, or three times if it made steps between
    kEveryWorker,  // each worker has failed in this way: at least two such failures, or three by each if one of them
                   // made steps between, or if another task may be the cause
  };
  // Notes that the worker has failed by this fault. `living`: the workers that take part, with or without this one. A
  // failure counts for at most `window`, and until the worker has made kManySteps as another member.
  Verdict note(Instant now, const Member& worker, const Fault& fault, const std::set<TaskId>& living, Duration window);
  // The worker has made so many steps since it joined.
  void note_steps(const Member& worker, std::uint64_t steps);

  // A worker that has made so many steps was past the place of its last failure.
  static constexpr std::uint64_t kManySteps = 100;

 private:
  struct Entry {
    Member member;
    Fault fault;
    std::size_t times = 0;  // in a row
    Instant at;
    bool made_steps = false;  // between these failures
  };
  std::map<TaskId, Entry> entries_;
};

}  // namespace disttrain::chiefd
