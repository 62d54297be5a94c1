// Names threads, and pins them to cores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::daemon {

// Sets the calling thread's name, which top and gdb show. Cuts it to 15 bytes. Also gives the thread a stack for its
// crash report (common/os/crash_stack.h).
void name_thread(const std::string& name);

// Lets the calling thread, and the threads that it will start, run only on these cores. Does nothing if `cores` is
// empty. Fails with kConfig if a core doesn't exist or this process may not use it.
Status pin_thread(const std::vector<std::uint32_t>& cores);

// The number of cores that this process may run on; at least 1.
std::uint32_t cores_given();

}  // namespace disttrain::daemon
