#include "chiefd/core/job/work_clock.h"

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

WorkClock::WorkClock(const JobParts& parts) : setup_(parts.setup), generation_(parts.generation) {}

Instant WorkClock::worked_at(const Tasks& tasks, const Member& member) const {
  const Task* task = tasks.find(member.task);
  if (task == nullptr || task->member != member || task->heartbeat.job != setup_.id) return {};
  // A description belongs to no generation.
  const Generation generation = task->heartbeat.generation;
  return generation.value == 0 || generation == generation_.number() ? task->worked : Instant();
}

}  // namespace disttrain::chiefd
