#include "chiefd/core/example_rate.h"

#include <algorithm>

namespace disttrain::chiefd {

void ExampleRate::hear(Instant now, std::uint64_t examples) {
  if (!examples_ || examples < *examples_) {
    grown_.clear();
  } else if (examples > *examples_) {
    // After a pause of the worker, start the measurement over at the first new example, because the chief doesn't know
    // when the pause ended.
    if (grown_.size() > 1 && stands_still()) grown_.clear();
    if (grown_.size() > 2 && now - grown_[grown_.size() - 2].at < kGrain) grown_.pop_back();
    grown_.push_back(Point{now, examples});
    while (grown_.size() > 2 && grown_[1].at <= now - kWindow) grown_.pop_front();
  }
  examples_ = examples;
  heard_ = now;
}

std::optional<double> ExampleRate::per_second() const {
  if (grown_.empty()) return std::nullopt;
  if (stands_still()) return 0.0;
  const Duration took = grown_.back().at - grown_.front().at;
  if (took <= Duration::zero()) return std::nullopt;
  return static_cast<double>(grown_.back().examples - grown_.front().examples) / to_seconds(took);
}

bool ExampleRate::stands_still() const {
  const Duration took = grown_.back().at - grown_.front().at;
  return heard_ - grown_.back().at > std::max(kWindow, 2 * took);
}

}  // namespace disttrain::chiefd
