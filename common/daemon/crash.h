// What a process leaves behind when it dies of a bug: why, and where it was, in its log. Then it ends by the same
// signal as without this, so that whoever waits for it, and a core dump, see the same. Exhaustion is no bug: there
// exhaustion.h says how it ends.
#pragma once

#include "common/daemon/log/log_entry.h"

namespace disttrain::daemon {

enum class LogForm : std::uint8_t;

// From now on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, with it uncaught exceptions and failed checks, write a line
// of level error, then the stack frames of the thread, as lines in the log's form; in the journal one entry with all of
// it. Frames look like "psd(_ZN9disttrain...+0x1f)" or "psd(+0x1234)": c++filt and addr2line -Cfie know more. Signals
// that have a handler already (a sanitizer's) keep it. Nothing of it allocates or locks, but what glibc's backtrace()
// does; a thread other than the caller that runs out of stack ends without a word. Once per process, at its start.
void report_crashes(TaskId task, LogForm form);

}  // namespace disttrain::daemon
