#include "chiefd/core/job/views/fitness.h"

#include "chiefd/core/job/views/links.h"

namespace disttrain::chiefd::views {

bool is_available(const JobFacts& job, const Task& task) {
  return task.takes_work() && !job.candidates.is_left_out(task);
}

bool may_train(const JobFacts& job, const Task& task, Instant now) {
  const TaskId id = task.member.task;
  return is_available(job, task) && reaches_owners(job, id) && !job.worker_losses.is_too_often(id, now);
}

bool may_start(const JobFacts& job, const Task& task, Instant now) {
  return may_train(job, task, now) && !job.candidates.awaits_retry(task.member);
}

bool is_ready(const JobFacts& job, const Task& task, Instant now) {
  if (!is_available(job, task) || !job.candidates.is_prepared(task.member)) return false;
  return job.setup.waits_for_lost() ? reaches_owners(job, task.member.task) : may_train(job, task, now);
}

bool may_come(const JobFacts& job, const Task& task, Instant now) {
  return task.is_there() && !job.candidates.is_left_out(task) && !job.worker_losses.is_too_often(task.member.task, now);
}

// A job that has never trained doesn't wait for what a worker lacks: as at its first start, it fails if no worker can
// take part.
bool is_barred(const JobFacts& job, const Task& task) {
  const bool lacks_something = !job.condition.was_opened() && job.candidates.awaits_retry(task.member);
  return task.is_there() && (lacks_something || job.candidates.is_left_out(task));
}

}  // namespace disttrain::chiefd::views
