// The only source of true randomness: incarnations, journal ids and tokens, which must be unique and unguessable. All
// other randomness is seeded by the job.
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
