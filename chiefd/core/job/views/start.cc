#include "chiefd/core/job/views/start.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/views/fitness.h"

namespace disttrain::chiefd::views {
// The connected workers with which the job can begin. If ranks are fixed (job.on_worker_loss = "wait"), these are the
// tasks that hold them, in the order of the ranks.
std::vector<Member> workers_there(const JobFacts& job, const Tasks& tasks) {
  std::map<TaskId, Member> there;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kWorker && is_available(job, task)) there.emplace(id, task.member);
  std::vector<Member> workers;
  for (const TaskId rank : job.workers.ranks())
    if (there.count(rank) != 0) workers.push_back(there.at(rank));
  if (job.workers.ranks().empty())
    for (const auto& [id, member] : there) workers.push_back(member);
  return workers;
}

bool lacks_at_start(const JobFacts& job, const Tasks& tasks, Role role) {
  if (role == Role::kPs)
    return std::any_of(tasks.all().begin(), tasks.all().end(), [](const auto& entry) {
      return entry.first.role == Role::kPs && entry.second.is_listed && !entry.second.takes_work();
    });
  const std::size_t ranks = job.workers.ranks().size();
  const std::size_t wanted = ranks == 0 ? job.setup.submission.awaited_workers : 0;
  const std::size_t left_out =
      count_workers(tasks, [&job](const Task& task) { return task.takes_work() && job.candidates.is_left_out(task); });
  const std::size_t awaited = wanted - std::min(wanted, left_out);
  return workers_there(job, tasks).size() < std::max({job.setup.least_workers(), ranks, awaited});
}

std::vector<Awaited> missing_at_start(const JobFacts& job, const Tasks& tasks) {
  std::vector<Awaited> missing;
  for (const auto& [id, task] : tasks.all())
    if (task.is_listed && !task.takes_work() && id.role != Role::kEvaluator)  // a job trains without evaluators
      missing.push_back(absent(id, &task, job.start.gathers_since));
  for (const TaskId rank : job.workers.ranks()) {
    const Task* task = tasks.find(rank);
    const bool is_unlisted = task == nullptr || !task->is_listed;
    if (is_unlisted && (task == nullptr || !task->takes_work()))
      missing.push_back(absent(rank, task, job.start.gathers_since));
  }
  const std::size_t there = count_workers(tasks, [&job](const Task& task) { return is_available(job, task); });
  if (missing.empty() && there < job.setup.least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, job.start.gathers_since, job.setup.least_workers() - there});
  return missing;
}

std::vector<Member> without_lost_before(const JobFacts& job, std::vector<Member> workers) {
  const auto lost_before = [&job](const Member& worker) { return job.candidates.was_lost_at_start(worker.task); };
  const auto lost = static_cast<std::size_t>(std::count_if(workers.begin(), workers.end(), lost_before));
  if (!job.setup.waits_for_lost() && workers.size() - lost >= job.setup.least_workers())
    std::erase_if(workers, lost_before);
  return workers;
}

std::vector<Member> newcomers(const JobFacts& job, const Tasks& tasks, std::size_t others) {
  std::set<TaskId> known;
  for (const Member& worker : job.workers.roster().members) known.insert(worker.task);
  for (const auto& [worker, error] : job.start.could_not_describe) known.insert(worker.task);
  std::vector<Member> workers = workers_there(job, tasks);
  std::erase_if(workers, [&](const Member& worker) { return known.count(worker.task) != 0; });
  const auto lost_before = [&job](const Member& worker) { return job.candidates.was_lost_at_start(worker.task); };
  const auto lost = static_cast<std::size_t>(std::count_if(workers.begin(), workers.end(), lost_before));
  if (others + workers.size() - lost >= job.setup.least_workers()) std::erase_if(workers, lost_before);
  return workers;
}

bool may_start_with(const JobFacts& job, std::size_t workers) {
  return !job.condition.is_stopping() && job.workers.ranks().empty() && workers >= job.setup.least_workers();
}

// A restarted chief may have begun with the worker that fails alone, and meanwhile the others are back.
bool may_start_without(const JobFacts& job, const Tasks& tasks, Instant now, const Member& worker) {
  return may_start_with(job, others_in_roster(job, {worker}) + others_outside(job, tasks, now));
}

std::size_t others_in_roster(const JobFacts& job, const std::set<Member>& without) {
  const std::vector<Member>& members = job.workers.roster().members;
  return static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](const Member& member) {
    return without.count(member) == 0 && !job.workers.is_lost(member);
  }));
}

std::size_t others_outside(const JobFacts& job, const Tasks& tasks, Instant now) {
  return count_workers(
      tasks, [&](const Task& task) { return !job.workers.is_in_roster(task.member) && may_start(job, task, now); });
}

Loss loss_at_start(const JobFacts& job, TaskId worker) {
  return job.candidates.was_lost_at_start(worker) ? Loss::kCounts : Loss::kSpared;
}

}  // namespace disttrain::chiefd::views
