// The only code that reads the time. A loop reads the time once per turn and passes it to its core.
#pragma once

#include <cstdint>
#include <ctime>

#include "common/time.h"

namespace disttrain::daemon {

// The monotonic clock. Only differences between its values have a meaning, and only on this host until it reboots.
inline Instant now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

// Unix time, for people only. No rule depends on it, because it may jump.
inline std::int64_t wall_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Time since this host booted, including the time it was suspended. Nobody can set this clock, and all processes see
// the same value.
//
// Events in the chief's journal have this time beside the wall clock, because losses count for job.max_restarts only
// within a window of time. With the wall clock alone, all losses would seem new after somebody sets the clock back. The
// kernel's boot id would also show whether the host has rebooted since, but systemd hides it from the chief
// (ProcSubset=pid).
inline std::int64_t uptime_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// CPU time of the calling thread since its start.
inline Duration thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace disttrain::daemon
