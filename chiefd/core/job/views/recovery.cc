#include "chiefd/core/job/views/recovery.h"

#include <string>
#include <vector>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/views/fitness.h"
#include "chiefd/core/job/views/links.h"

namespace disttrain::chiefd::views {
Error too_many_losses(const JobFacts& job, ErrorCode code, const Cause& cause, std::size_t times) {
  return Error{code, cause.reason + "; this is loss number " + std::to_string(times) +
                         " within job.restart_window, and job.max_restarts is " +
                         std::to_string(job.setup.config().job.max_restarts)};
}

std::vector<Awaited> missing_ps(const JobFacts& job, const Tasks& tasks) {
  std::vector<Awaited> missing;
  for (const Member& ps : job.generation.holders()) {
    const Task* task = tasks.find(ps.task);
    if (task == nullptr || !task->takes_work())
      missing.push_back(absent(ps.task, task, job.rollbacks.current()->gathers_since));
    else if (is_avoided(job, tasks, ps.task))
      missing.push_back({ps.task, AwaitedFor::kLink, job.rollbacks.current()->gathers_since});
  }
  return missing;
}

bool lacks_ps(const JobFacts& job, const Tasks& tasks) {
  return job.start.lacks_memory || !missing_ps(job, tasks).empty();
}

std::vector<Awaited> missing_workers(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<Awaited> missing;
  if (job.setup.waits_for_lost()) {
    for (const TaskId rank : job.workers.ranks()) {
      const Task* task = tasks.find(rank);
      if (task != nullptr && is_ready(job, *task, now)) continue;
      if (task != nullptr && task->takes_work() && !reaches_owners(job, rank)) {
        missing.push_back({rank, AwaitedFor::kLink, job.rollbacks.current()->gathers_since});
        continue;
      }
      const auto invited =
          task != nullptr ? job.candidates.invited().find(task->member) : job.candidates.invited().end();
      if (invited != job.candidates.invited().end() && task->takes_work())
        missing.push_back({rank, AwaitedFor::kDescription, invited->second});
      else
        missing.push_back(absent(rank, task, job.rollbacks.current()->gathers_since));
    }
    return missing;
  }
  const std::size_t ready = count_workers(tasks, [&](const Task& task) { return is_ready(job, task, now); });
  if (ready < job.setup.least_workers())
    missing.push_back(
        {std::nullopt, AwaitedFor::kHello, job.rollbacks.current()->gathers_since, job.setup.least_workers() - ready});
  return missing;
}

std::vector<Awaited> late_workers(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<Awaited> late;
  if (now >= job.reclaim.waits_for_workers_until) return late;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kWorker && task.is_listed && task.state == TaskState::kWaiting)
      late.push_back(absent(id, &task, job.rollbacks.current()->gathers_since));
  return late;
}

bool can_train_with(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (job.setup.waits_for_lost()) return false;
  return count_workers(tasks, [&](const Task& task) { return may_train(job, task, now); }) >= job.setup.least_workers();
}

std::size_t fewest_workers(const JobFacts& job) {
  return job.setup.waits_for_lost() ? job.workers.ranks().size() : job.setup.least_workers();
}

Loss loss_while_away(const JobFacts& job, TaskId task) {
  return job.reclaim.told_to_end.count(to_string(task)) == 0 ? Loss::kCounts : Loss::kLeft;
}

}  // namespace disttrain::chiefd::views
