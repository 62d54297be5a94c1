// Computes the examples per second of one worker in one generation of a job. Each heartbeat has the number of examples
// that the worker has processed so far.
//
// The rate is measured between two heartbeats. In each of the two, the number was higher than in the heartbeat before
// it. The two are about kWindow apart, or one step apart if a step takes longer than kWindow. So a worker with long
// steps also gets a steady rate. For example:
//
//   1. A worker makes a step of 32 examples every 5 s and sends a heartbeat every 0.5 s.
//   2. Within kWindow (2 s) the number grows by 0 or by 32. That would be 0 or 16 examples per second, which is wrong.
//   3. Between the last two heartbeats in which the number has grown, it grew by 32 within 5 s. That is 6.4 examples
//      per second, which is right.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.h"

namespace disttrain::chiefd {

class ExampleRate {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(2);

  // Notes a heartbeat. `examples` is the number of examples so far. If it is smaller than before, the measurement
  // starts over.
  void hear(Instant now, std::uint64_t examples);
  // The rate at the last heartbeat. 0: the worker has paused, because its number of examples hasn't grown for a while
  // (longer than kWindow, and longer than twice the measured time). None: the number hasn't grown twice yet.
  std::optional<double> per_second() const;

 private:
  struct Point {
    Instant at;
    std::uint64_t examples = 0;
  };

  bool stands_still() const;

  // The least time between two heartbeats that are kept for the measurement.
  static constexpr Duration kGrain = std::chrono::milliseconds(50);
  std::deque<Point> grown_;
  std::optional<std::uint64_t> examples_;
  Instant heard_;
};

}  // namespace disttrain::chiefd
