#include "chiefd/core/job/members.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

JobMembers::JobMembers(const JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates) {}

bool JobMembers::uses(const Member& member) const {
  return generation_.is_owner(member) || workers_.is_taking_part(member);
}

std::vector<Member> JobMembers::all() const {
  std::vector<Member> members = generation_.holders();
  members.insert(members.end(), workers_.all().begin(), workers_.all().end());
  for (const auto& [member, since] : candidates_.invited())
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  return members;
}

bool JobMembers::was_removed_before(const Tasks& tasks, const Member& worker) const {
  const Task* task = tasks.find(worker.task);
  if (task == nullptr || task->member != worker || uses(worker) || !stage_.is(Stage::kTrain)) return false;
  const bool said_so = task->hello.job == setup_.id && task->hello.generation == generation_.number();
  const bool says_so = task->heartbeat.job == setup_.id && task->heartbeat.generation == generation_.number();
  return said_so || says_so;
}

}  // namespace disttrain::chiefd
