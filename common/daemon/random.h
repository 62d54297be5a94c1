// The only source of real random numbers. Incarnations, the ids of journals, and the seed of the jobs' secrets come
// from here, because they must be unique and impossible to guess. All other randomness follows from the job's seed.
#pragma once

#include <cstdint>

#include "common/ids.h"

namespace disttrain::daemon {

// From the kernel; never 0.
std::uint64_t draw_number();

inline Incarnation draw_incarnation() {
  return Incarnation(draw_number());
}

}  // namespace disttrain::daemon
