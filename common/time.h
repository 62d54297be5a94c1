// Time as the cores see it: an argument, never a clock. The shells read it once per turn of their loop from the
// monotonic clock (common/daemon/clock.h); the simulator invents it.
#pragma once

#include <chrono>

namespace disttrain {

using Duration = std::chrono::nanoseconds;

// Not a real clock: a tag that keeps instants of a monotonic clock apart from other times.
struct Monotonic {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<Monotonic, Duration>;
  static constexpr bool is_steady = true;
};

using Instant = Monotonic::time_point;

inline double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace disttrain
