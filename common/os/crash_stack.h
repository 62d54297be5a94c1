// The stack on which a thread handles signals.
#pragma once

namespace disttrain {

// Gives the calling thread a stack of its own for signal handlers, until the thread ends. Without one, a thread that
// has used up its stack dies without a report (common/daemon/crash.h). Does nothing if the thread has such a stack, as
// in a program with a sanitizer, or if there is no memory for one. Every thread of a daemon calls it at its begin, by
// daemon::name_thread() if its room may include that. Takes about 5 microseconds.
void use_crash_stack();

}  // namespace disttrain
