// Threads by name and place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::daemon {

// As top and gdb show it; cut to 15 bytes. Of the calling thread.
void name_thread(const std::string& name);

// The calling thread, and those it starts from now on, run on these cores only; empty: nothing changes. kConfig when
// one of them isn't there or isn't given to this process.
Status pin_thread(const std::vector<std::uint32_t>& cores);

// Cores that this process may run on, at least 1.
std::uint32_t cores_given();

}  // namespace disttrain::daemon
