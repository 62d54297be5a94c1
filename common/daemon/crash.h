// When a bug ends the process, the process first logs the reason and the stack. Then it dies by the same signal as it
// would without this code, so its parent and a core dump see no difference. Running out of memory, threads or
// descriptors isn't a bug; exhaustion.h handles that.
#pragma once

#include "common/daemon/log/log_entry.h"

namespace disttrain::daemon {

enum class LogForm : std::uint8_t;

// Installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT. This covers uncaught exceptions and failed checks,
// which abort. A handler logs a line of level error and then the stack frames of the thread. On stderr each frame is a
// line in the form of the log. In systemd's journal one entry has the line and all frames. Frames look like
// "psd(_ZN9disttrain...+0x1f)" or "psd(+0x1234)"; c++filt and addr2line -Cfie resolve them. A signal that already has a
// handler, such as a sanitizer's, keeps it. The handlers allocate and lock nothing, except in glibc's backtrace(). If a
// thread runs out of stack, there is a report only if the thread has called use_crash_stack()
// (common/os/crash_stack.h); threads of libraries, such as OpenMP's, haven't. Call this once, at the start of the
// process.
void report_crashes(TaskId task, LogForm form);

// From now on a crash also adds a line to this open file: the number that note_work() has set in the thread that
// crashes. If that is 0, or a process sent the signal, it adds nothing. The file must stay open.
void note_crashes_in(int file);
// Says for what this thread works from now on, such as a job's number.
void note_work(std::uint32_t number);

}  // namespace disttrain::daemon
