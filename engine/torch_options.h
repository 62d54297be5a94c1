// Options of libtorch that all models in this process share.
#pragma once

#include <cstdint>

namespace disttrain::workerd {

// Sets the number of compute threads for the computations that the calling thread begins. OpenMP keeps such a number
// for each thread.
void use_threads(std::uint32_t threads);

// Lets glibc keep the memory that a step frees, so that the next step has no page faults. Call it when a model is made.
void keep_freed_memory();

}  // namespace disttrain::workerd
