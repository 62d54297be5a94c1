// When a bug ends the process, it logs the reason and the place. Then it ends by the same signal as without this, so
// that its parent and a core dump see no difference. Exhaustion is no bug: see exhaustion.h.
#pragma once

#include "common/daemon/log/log_entry.h"

namespace disttrain::daemon {

enum class LogForm : std::uint8_t;

// From now on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT (so also uncaught exceptions and failed checks) write a line
// of level error, then the thread's stack frames, as lines in the log's form; in the journal one entry with all of it.
// Frames look like "psd(_ZN9disttrain...+0x1f)" or "psd(+0x1234)"; c++filt and addr2line -Cfie resolve them. Signals
// that already have a handler (a sanitizer's) keep it. Only glibc's backtrace() allocates or locks. A thread other than
// the caller that runs out of stack ends without a report. Call it once per process, at its start.
void report_crashes(TaskId task, LogForm form);

}  // namespace disttrain::daemon
