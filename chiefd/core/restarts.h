// Counts the restarts within a window of time, so that the chief can end an endless loop of restarts.
#pragma once

#include <cstdint>
#include <deque>

#include "common/time.h"

namespace disttrain::chiefd {

class Restarts {
 public:
  // Notes a restart. Returns the number of restarts within the window that ends now, including this one.
  std::size_t note(Instant now, Duration window) {
    times_.push_back(now);
    while (times_.front() + window < now) times_.pop_front();
    return times_.size();
  }
  // The number of restarts within the window that ends now.
  std::size_t count(Instant now, Duration window) const {
    std::size_t count = 0;
    for (const Instant time : times_) count += time + window >= now ? 1 : 0;
    return count;
  }

 private:
  std::deque<Instant> times_;
};

// The pause before the next try, after `failures` failed tries in a row. The pause is 0 after no failure and 200 ms
// after the first. It doubles with each other failure, up to 10 s.
constexpr Duration back_off(std::uint32_t failures) {
  constexpr Duration kFirst = std::chrono::milliseconds(200);
  constexpr Duration kLongest = std::chrono::seconds(10);
  if (failures == 0) return Duration::zero();
  Duration pause = kFirst;
  for (std::uint32_t i = 1; i < failures && pause < kLongest; ++i) pause *= 2;
  return pause < kLongest ? pause : kLongest;
}

}  // namespace disttrain::chiefd
