// Time as the cores see it. A core gets the time as an argument and never reads a clock. The shells read the monotonic
// clock (common/daemon/clock.h) once per turn of their loop. The simulator makes up the time.
#pragma once

#include <chrono>

namespace disttrain {

using Duration = std::chrono::nanoseconds;

// A tag type for std::chrono, so that the compiler doesn't mix times of the monotonic clock with other times. It isn't
// a clock that can be read.
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
