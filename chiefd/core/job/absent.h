// How a job names a task that isn't there.
#pragma once

#include "chiefd/core/awaited.h"
#include "chiefd/core/tasks.h"

namespace disttrain::chiefd {

// A task that isn't there is away since it was last heard; one that never was, since the job waits for it.
inline Awaited absent(TaskId id, const Task* task, Instant waiting_since) {
  const bool was_heard = task != nullptr && task->member.incarnation.value != 0;
  return {id, AwaitedFor::kHello, was_heard ? task->last_heard : waiting_since};
}

}  // namespace disttrain::chiefd
