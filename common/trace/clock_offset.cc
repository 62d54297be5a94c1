// Of the newest 64 answers the one with the shortest round trip counts. Clocks drift apart by up to 100 ppm. If the
// offset 0 is within the uncertainty, 0 is used. So on one host, where all processes read the same clock, the trace is
// exact. Wall clocks were rejected, because they may jump.
#include "common/trace/clock_offset.h"

#include <algorithm>

namespace disttrain {

void ClockEstimate::hear(Instant sent, Instant chief, Instant arrived) {
  if (arrived < sent) return;
  const Duration half = (arrived - sent + Duration(1)) / 2;
  const Instant middle = sent + (arrived - sent) / 2;
  answers_[next_] = {{chief - middle, half}, arrived};
  next_ = (next_ + 1) % kAnswers;
  size_ = std::min(size_ + 1, kAnswers);
}

std::optional<ClockOffset> ClockEstimate::best(Instant now) const {
  std::optional<ClockOffset> best;
  for (std::size_t i = 0; i < size_; ++i) {
    ClockOffset clock = answers_[i].clock;
    const Duration age = std::max(now - answers_[i].arrived, Duration::zero());
    clock.uncertainty +=
        std::chrono::duration_cast<std::chrono::microseconds>(age).count() * Duration(kDrift) / 1'000'000;
    if (!best || clock.uncertainty < best->uncertainty) best = clock;
  }
  if (best && std::chrono::abs(best->offset) <= best->uncertainty) {
    best->uncertainty += std::chrono::abs(best->offset);
    best->offset = Duration::zero();
  }
  return best;
}

}  // namespace disttrain
