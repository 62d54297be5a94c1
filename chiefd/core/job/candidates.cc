#include "chiefd/core/job/candidates.h"

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

void Candidates::leave_out(const Task& task, const std::string& why) {
  left_out_[task.member.task] = Process{task.member, task.hello.host, task.hello.pid};
  kept_out_[task.member.task] = why;
  prepared_.erase(task.member);
  invited_.erase(task.member);
}

// A process that was removed from the job comes back as another member, but lacks the same as before.
bool Candidates::is_left_out(const Task& task) const {
  const auto found = left_out_.find(task.member.task);
  if (found == left_out_.end()) return false;
  const Process& process = found->second;
  return process.member == task.member ||
         (process.pid != 0 && process.pid == task.hello.pid && process.host == task.hello.host);
}

void Candidates::meet(const Task& task) {
  if (left_out_.count(task.member.task) == 0 || is_left_out(task)) return;
  left_out_.erase(task.member.task);
  let_in(task.member.task);
}

}  // namespace disttrain::chiefd
