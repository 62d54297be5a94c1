#include "chiefd/core/job/views/members.h"

#include <algorithm>
#include <set>
#include <vector>

namespace disttrain::chiefd::views {

bool uses(const JobFacts& job, const Member& member) {
  return job.generation.is_owner(member) || job.workers.is_taking_part(member);
}

std::vector<Member> all_members(const JobFacts& job) {
  std::vector<Member> members = job.generation.holders();
  members.insert(members.end(), job.workers.all().begin(), job.workers.all().end());
  for (const auto& [member, since] : job.candidates.invited())
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  return members;
}

bool was_removed_before(const JobFacts& job, const Tasks& tasks, const Member& worker) {
  const Task* task = tasks.find(worker.task);
  if (task == nullptr || task->member != worker || uses(job, worker) || !job.stage.is(Stage::kTrain)) return false;
  const bool said_so = task->hello.job == job.setup.id && task->hello.generation == job.generation.number();
  const bool says_so = task->heartbeat.job == job.setup.id && task->heartbeat.generation == job.generation.number();
  return said_so || says_so;
}

std::set<TaskId> living_workers(const JobFacts& job) {
  std::set<TaskId> living;
  for (const Member& worker : job.workers.living()) living.insert(worker.task);
  return living;
}

Instant worked_at(const JobFacts& job, const Tasks& tasks, const Member& member) {
  const Task* task = tasks.find(member.task);
  if (task == nullptr || task->member != member || task->heartbeat.job != job.setup.id) return {};
  // A description belongs to no generation.
  const Generation generation = task->heartbeat.generation;
  return generation.value == 0 || generation == job.generation.number() ? task->worked : Instant();
}

Step reached(const JobFacts& job) {
  return job.rollbacks.current() ? job.rollbacks.current()->step : job.progress.step();
}

}  // namespace disttrain::chiefd::views
