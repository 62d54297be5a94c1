// Whom a job waits for. See job.h and awaited.h.
#include <algorithm>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {
namespace {

// A task that isn't there is away since it was last heard; one that never was, since the job waits for it.
Awaited absent(TaskId id, const Task* task, Instant waiting_since) {
  const bool was_heard = task != nullptr && task->member.incarnation.value != 0;
  return {id, AwaitedFor::kHello, was_heard ? task->last_heard : waiting_since};
}

}  // namespace

// All tasks of the cluster file, and each rank: a rank may be of a task that the file doesn't name. If these are there
// and job.min_workers asks for more, so many.
std::vector<Awaited> Job::missing_to_begin(const Tasks& tasks) const {
  const Instant since = gather_until_ - setup_.timeouts.setup;
  std::vector<Awaited> missing;
  for (const auto& [id, task] : tasks.all())
    if (task.is_listed && !task.takes_work()) missing.push_back(absent(id, &task, since));
  for (const TaskId rank : ranks_) {
    const Task* task = tasks.find(rank);
    const bool is_unlisted = task == nullptr || !task->is_listed;
    if (is_unlisted && (task == nullptr || !task->takes_work())) missing.push_back(absent(rank, task, since));
  }
  const auto there =
      static_cast<std::size_t>(std::count_if(tasks.all().begin(), tasks.all().end(), [](const auto& entry) {
        return entry.first.role == Role::kWorker && entry.second.takes_work();
      }));
  if (missing.empty() && there < least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, since, least_workers() - there});
  return missing;
}

std::vector<Awaited> Job::missing_ps(const Tasks& tasks) const {
  std::vector<Awaited> missing;
  for (const Member& ps : holders()) {
    const Task* task = tasks.find(ps.task);
    if (task == nullptr || !task->takes_work())
      missing.push_back(absent(ps.task, task, recovery_->gathers_since));
    else if (is_avoided(tasks, ps.task))
      missing.push_back({ps.task, AwaitedFor::kLink, recovery_->gathers_since});
  }
  return missing;
}

// For the generation to come.
bool Job::is_ready(const Task& task, Instant now) const {
  const TaskId id = task.member.task;
  if (id.role != Role::kWorker || !task.takes_work() || prepared_.count(task.member) == 0) return false;
  if (!reaches_owners(id)) return false;
  return waits_for_lost() || losses_of(id, now) <= config().job.max_restarts;
}

std::vector<Awaited> Job::missing_workers(const Tasks& tasks, Instant now) const {
  std::vector<Awaited> missing;
  if (waits_for_lost()) {
    for (const TaskId rank : ranks_) {
      const Task* task = tasks.find(rank);
      if (task != nullptr && is_ready(*task, now)) continue;
      if (task != nullptr && task->takes_work() && !reaches_owners(rank)) {
        missing.push_back({rank, AwaitedFor::kLink, recovery_->gathers_since});
        continue;
      }
      const auto invited = task != nullptr ? invited_.find(task->member) : invited_.end();
      if (invited != invited_.end() && task->takes_work())
        missing.push_back({rank, AwaitedFor::kDescription, invited->second});
      else
        missing.push_back(absent(rank, task, recovery_->gathers_since));
    }
    return missing;
  }
  const auto ready = static_cast<std::size_t>(std::count_if(
      tasks.all().begin(), tasks.all().end(), [&](const auto& entry) { return is_ready(entry.second, now); }));
  if (ready < least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, recovery_->gathers_since, least_workers() - ready});
  return missing;
}

std::vector<Awaited> Job::missing_to_train(const Tasks& tasks) const {
  std::vector<Awaited> missing;
  if (stopping_ || !is_work_left()) return missing;
  std::size_t living = 0;
  for (const Member& member : roster_.members) {
    if (lost_.count(member) == 0)
      ++living;
    else if (waits_for_lost())
      missing.push_back(absent(member.task, tasks.find(member.task), short_since_));
  }
  if (missing.empty() && living < least_workers())
    missing.push_back({std::nullopt, AwaitedFor::kHello, short_since_, least_workers() - living});
  return missing;
}

// Those who owe an answer in this stage.
AwaitedFor Job::expected_answer() const {
  switch (stage_) {
    case Stage::kDescribe:
      return AwaitedFor::kDescription;
    case Stage::kCreate:
      return AwaitedFor::kShards;
    case Stage::kOpen:
      return AwaitedFor::kOpen;
    case Stage::kRoster:
      return AwaitedFor::kRoster;
    case Stage::kEvaluate:
      return AwaitedFor::kEvaluation;
    case Stage::kClose:
      return AwaitedFor::kClose;
    default:  // kReclaim, kSettle
      return AwaitedFor::kReport;
  }
}

std::vector<Awaited> Job::waits_for(const Tasks& tasks, Instant now) const {
  std::vector<Awaited> all;
  const auto add = [&all](const std::vector<Awaited>& some) { all.insert(all.end(), some.begin(), some.end()); };
  if (stage_ == Stage::kGather) add(missing_to_begin(tasks));
  if (stage_ == Stage::kRegather) {
    add(missing_ps(tasks));
    add(missing_workers(tasks, now));
  }
  if (stage_ == Stage::kReclaim && awaited_.empty())
    for (const Member& member : members())
      if (reclaimed_.count(member) == 0) all.push_back(absent(member.task, tasks.find(member.task), progress_at_));
  for (const Member& member : awaited_) all.push_back({member.task, expected_answer(), waits_since_});
  for (const auto& [task, silence] : silent_ps_)
    all.push_back({task, silence.is_link ? AwaitedFor::kLink : AwaitedFor::kHeartbeat, silence.since});
  if (stage_ != Stage::kTrain) return all;
  if (is_short_) add(missing_to_train(tasks));
  if (const std::optional<TaskId> ps = leaving_owner(tasks); ps && !is_saved_)
    all.push_back({*ps, AwaitedFor::kCheckpoint, waits_since_});
  if (stopping_)
    for (const Member& worker : unfinished_) all.push_back({worker.task, AwaitedFor::kStepEnd, waits_since_});
  return all;
}

}  // namespace disttrain::chiefd
