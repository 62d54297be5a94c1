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

}  // namespace disttrain::chiefd
