// Counts how often each worker was lost lately. A worker that is lost more than job.max_restarts times within
// job.restart_window isn't taken back. Losses count for the task (for example worker/1), not for one of its processes.
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

  // `worker` is the name of the task, as in events: "worker/1".
  void note_lost(const std::string& worker, Instant at, const std::string& why) {
    lost_[worker].note(at, window());
    why_[worker] = why;
    last_loss_ = worker + ": " + why;
  }
  // Why this worker was lost last. "" if this chief has seen no loss of it.
  std::string why_lost(TaskId worker) const {
    const auto why = why_.find(to_string(worker));
    return why == why_.end() ? "" : why->second;
  }
  // Why the last worker was lost, such as "worker/1: its process has ended". "" if this chief has seen no loss.
  const std::string& last_loss() const { return last_loss_; }
  // The worker was removed because of a broken link. This counts for must_wait(), but not for job.max_restarts.
  void note_unlinked(TaskId worker, Instant at) { unlinked_[worker].note(at, window()); }

  std::size_t losses_of(TaskId worker, Instant now) const;
  bool is_too_often(TaskId worker, Instant now) const {
    return losses_of(worker, now) > setup_.config().job.max_restarts;
  }
  // True if the worker, which is connected since `joined`, must wait before it is taken back. It doesn't have to wait
  // after its first loss. After each further loss it waits longer.
  bool must_wait(TaskId worker, Instant joined, Instant now) const;

 private:
  Duration window() const { return setup_.config().job.restart_window; }

  const JobSetup& setup_;
  std::string last_loss_;
  std::map<std::string, Restarts> lost_;
  std::map<std::string, std::string> why_;
  std::map<TaskId, Restarts> unlinked_;
};

}  // namespace disttrain::chiefd
