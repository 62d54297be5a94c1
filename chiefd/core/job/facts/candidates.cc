#include "chiefd/core/job/facts/candidates.h"

#include "chiefd/core/restarts.h"

namespace disttrain::chiefd {

std::vector<Member> Candidates::invited_members() const {
  std::vector<Member> members;
  for (const auto& [member, since] : invited_) members.push_back(member);
  return members;
}

bool Candidates::may_be_asked(TaskId worker, Instant now) const {
  const auto after = ask_after_.find(worker);
  return now >= (after == ask_after_.end() ? Instant() : after->second);
}

void Candidates::note_prepared(const Member& member) {
  prepared_.insert(member);
  if (retries_.erase(member.task) > 0) let_in(member.task);
}

void Candidates::retry_later(const Member& worker, Instant now) {
  Retry& retry = retries_[worker.task];
  if (retry.worker != worker) retry = Retry{worker, 0, now};
  retry.not_before = now + back_off(++retry.failures);
  prepared_.erase(worker);
}

std::vector<Member> Candidates::retries() const {
  std::vector<Member> workers;
  for (const auto& [task, retry] : retries_) workers.push_back(retry.worker);
  return workers;
}

bool Candidates::awaits_retry(const Member& worker) const {
  const auto found = retries_.find(worker.task);
  return found != retries_.end() && found->second.worker == worker;
}

bool Candidates::may_retry(const Member& worker, Instant now) const {
  return !awaits_retry(worker) || now >= retries_.at(worker.task).not_before;
}

void Candidates::leave_out(const Task& task, const std::string& why) {
  left_out_[task.member.task] = task.hello;
  retries_.erase(task.member.task);
  kept_out_[task.member.task] = why;
  prepared_.erase(task.member);
  invited_.erase(task.member);
}

// A process that was removed from the job comes back as another member, but lacks the same as before.
bool Candidates::is_left_out(const Task& task) const {
  const auto found = left_out_.find(task.member.task);
  return found != left_out_.end() && is_same_process(found->second, task.hello);
}

std::vector<TaskId> Candidates::left_out() const {
  std::vector<TaskId> tasks;
  for (const auto& [task, hello] : left_out_) tasks.push_back(task);
  return tasks;
}

void Candidates::meet(const Task& task) {
  const TaskId id = task.member.task;
  const bool was_left_out = left_out_.count(id) != 0 && !is_left_out(task);
  if (was_left_out) left_out_.erase(id);
  const bool had_failed = !awaits_retry(task.member) && retries_.erase(id) > 0;
  if (was_left_out || (had_failed && !is_left_out(task))) let_in(id);
}

}  // namespace disttrain::chiefd
