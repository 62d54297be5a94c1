// Counts events, and measures how long the real code takes to handle them. The time is that of the machine that runs
// the simulation, and the only number that may differ between two runs with the same inputs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/time.h"

namespace disttrain::scale {

// Returns the reading of a clock that never goes back.
using ReadClock = Duration (*)();

struct Spent {
  std::uint64_t events = 0;
  Duration time{};

  friend Spent operator-(Spent a, const Spent& b) { return Spent{a.events - b.events, a.time - b.time}; }
  friend Spent operator+(Spent a, const Spent& b) { return Spent{a.events + b.events, a.time + b.time}; }
};

class Meter {
 public:
  explicit Meter(ReadClock clock) : clock_(clock), reading_(cost_of(clock)) {}

  // Runs `work`, which handles one event, and adds its time.
  template <typename Work>
  void run(const Work& work) {
    const Duration begin = clock_();
    work();
    spent_.time += std::max(Duration(), clock_() - begin - reading_);
    ++spent_.events;
  }
  const Spent& spent() const { return spent_; }

 private:
  // The time that one reading of the clock takes. A CPU clock takes as long as a small event.
  static Duration cost_of(ReadClock clock) {
    Duration least = Duration::max();
    for (int i = 0; i < 100; ++i) {
      const Duration begin = clock();
      least = std::min(least, clock() - begin);
    }
    return least;
  }

  const ReadClock clock_;
  const Duration reading_;
  Spent spent_;
};

}  // namespace disttrain::scale
