// How a job reports a task that isn't connected.
#pragma once

#include "chiefd/core/awaited.h"
#include "chiefd/core/tasks.h"

namespace disttrain::chiefd {

// An absent task counts from when the chief last heard it. If the chief never heard it, it counts from `waiting_since`.
inline Awaited absent(TaskId id, const Task* task, Instant waiting_since) {
  const bool was_heard = task != nullptr && task->member.incarnation.value != 0;
  return {id, AwaitedFor::kHello, was_heard ? task->last_heard : waiting_since};
}

}  // namespace disttrain::chiefd
