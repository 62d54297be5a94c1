// The clock of this host that never jumps, for rooms that may not include common/daemon/clock.h. It is the same clock.
#pragma once

#include <chrono>

#include "common/time.h"

namespace disttrain::transport {

inline Instant monotonic_now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace disttrain::transport
