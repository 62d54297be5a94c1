// Processes that a trainer leaves behind. The kill of its process group doesn't end those that have begun a session of
// their own (setsid, as daemons do). They would keep memory, devices and ports from the next jobs.
#pragma once

#include <sys/types.h>

namespace disttrain::workerd {

// From now on each process whose parent ends becomes a child of this process, if it descends from it. May be called
// again.
void adopt_orphans();

// Kills and reaps the children of this process that are in the trainer's process group, or in another session than this
// process, and then those that they leave. Call it when the trainer itself has ended. Blocks until no such child is
// left, at most for a second: the kernel may need long to end a process that waits for a device. Without
// /proc/self/task/*/children only the group is reaped. Any thread may call it.
void end_orphans(pid_t group);

}  // namespace disttrain::workerd
