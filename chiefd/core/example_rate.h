// How many examples a worker does per second, by what its last heartbeats say. A value, of one task in one generation
// of a job.
//
// It measures between points at which the count was seen to have grown: over the last kWindow, or where steps take
// longer than that over the last step, so that what is slow doesn't look like something that stops and goes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/time.h"

namespace disttrain::chiefd {

class ExampleRate {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(2);

  // `examples`: all that it has done. One that is smaller than before begins anew.
  void hear(Instant now, std::uint64_t examples);
  // As of the last heartbeat. 0: it stands still, for longer than kWindow and than twice what its last steps took.
  // None: it hasn't grown twice yet.
  std::optional<double> per_second() const;

 private:
  struct Point {
    Instant at;
    std::uint64_t examples = 0;
  };

  bool stands_still() const;

  static constexpr Duration kGrain = std::chrono::milliseconds(50);  // points of one window aren't closer
  std::deque<Point> grown_;
  std::optional<std::uint64_t> examples_;
  Instant heard_;
};

}  // namespace disttrain::chiefd
