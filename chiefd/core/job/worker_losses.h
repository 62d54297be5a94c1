// How often each worker was lost lately. A worker that is lost more than job.max_restarts times within
// job.restart_window isn't taken back. Losses count for the task id, whichever process it was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "chiefd/core/job/setup.h"
#include "chiefd/core/restarts.h"
#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

class WorkerLosses {
 public:
  explicit WorkerLosses(const JobSetup& setup) : setup_(setup) {}

  // `worker`: the task's name, as in events.
  void note_lost(const std::string& worker, Instant at) { lost_[worker].note(at, window()); }
  // The worker was removed for a broken link. This counts for must_wait(), not for job.max_restarts.
  void note_unlinked(TaskId worker, Instant at) { unlinked_[worker].note(at, window()); }

  std::size_t losses_of(TaskId worker, Instant now) const;
  bool is_too_often(TaskId worker, Instant now) const {
    return losses_of(worker, now) > setup_.config().job.max_restarts;
  }
  // True: the worker, connected since `joined`, isn't taken back yet. It doesn't wait after its first loss, and longer
  // after each further one.
  bool must_wait(TaskId worker, Instant joined, Instant now) const;

 private:
  Duration window() const { return setup_.config().job.restart_window; }

  const JobSetup& setup_;
  std::map<std::string, Restarts> lost_;
  std::map<TaskId, Restarts> unlinked_;
};

}  // namespace disttrain::chiefd
