// The examples per second of a worker, computed from its last heartbeats. A value, for one task in one generation of a
// job.
//
// The rate is measured between heartbeats at which the count had grown: over the last kWindow, or over the last step if
// steps take longer. So a slow worker doesn't look like one that stops and goes.
//
//   1. A worker makes a step of 32 examples every 5 s and sends a heartbeat every 0.5 s.
//   2. Within kWindow (2 s) the count grows by 0 or by 32: 0 or 16 examples per second, which is wrong.
//   3. Between the last two heartbeats with growth it grew by 32 in 5 s: 6.4 examples per second.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.h"

namespace disttrain::chiefd {

class ExampleRate {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(2);

  // `examples`: the worker's total. If it is smaller than before, the measurement begins anew.
  void hear(Instant now, std::uint64_t examples);
  // The rate at the last heartbeat. 0: the count has stood still for longer than kWindow and than twice the time of the
  // last steps. None: the count hasn't grown twice yet.
  std::optional<double> per_second() const;

 private:
  struct Point {
    Instant at;
    std::uint64_t examples = 0;
  };

  bool stands_still() const;

  static constexpr Duration kGrain = std::chrono::milliseconds(50);  // the least distance of two points in a window
  std::deque<Point> grown_;
  std::optional<std::uint64_t> examples_;
  Instant heard_;
};

}  // namespace disttrain::chiefd
