// Processes that a trainer leaves behind. The kill of its process group doesn't end those that have begun a group or a
// session of their own (setpgid; setsid, as daemons do). They would keep memory, devices and ports from the next jobs.
//
// A process has one trainer at a time. Its other children are in its own process group, and whoever started them waits
// for them.
#pragma once

#include <sys/types.h>

namespace disttrain::workerd {

// From now on each process whose parent ends becomes a child of this process, if it descends from it. May be called
// again.
void adopt_orphans();

// Reaps the orphans that have ended, while the trainer runs. Otherwise they would stay in the table of processes until
// its end. Never blocks, and never reaps the trainer itself. Any thread may call it.
void reap_orphans(pid_t trainer);

// Kills and reaps the children of this process that are in the trainer's process group, or in another one than this
// process, and then those that they leave. Call it when the trainer itself has ended. Blocks until no such child is
// left, at most for a second: the kernel may need long to end a process that waits for a device. Without
// /proc/self/task/*/children only the group is reaped. Any thread may call it.
void end_orphans(pid_t group);

}  // namespace disttrain::workerd
