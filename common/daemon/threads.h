// Names of threads, and the cores they run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::daemon {

// Names the calling thread, as top and gdb show it; cut to 15 bytes.
void name_thread(const std::string& name);

// The calling thread and the threads that it starts later run only on these cores; empty: no change. kConfig if a core
// doesn't exist or isn't given to this process.
Status pin_thread(const std::vector<std::uint32_t>& cores);

// Cores that this process may run on, at least 1.
std::uint32_t cores_given();

}  // namespace disttrain::daemon
