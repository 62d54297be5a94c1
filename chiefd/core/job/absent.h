// Builds the status entry for a task that a job waits for because the task isn't connected.
#pragma once

#include "chiefd/core/awaited.h"
#include "chiefd/core/tasks.h"

namespace disttrain::chiefd {

// The wait for an absent task began when the chief last heard from the task. If the chief never heard from the task,
// the wait began at `waiting_since`.
inline Awaited absent(TaskId id, const Task* task, Instant waiting_since) {
  const bool was_heard = task != nullptr && task->member.incarnation.value != 0;
  const bool is_busy = task != nullptr && task->unreleased != JobId();
  return {id, is_busy ? AwaitedFor::kClose : AwaitedFor::kHello, was_heard ? task->last_heard : waiting_since};
}

}  // namespace disttrain::chiefd
