#include "chiefd/core/job/facts/checkpoint_schedule.h"

#include <algorithm>

#include "chiefd/core/restarts.h"

namespace disttrain::chiefd {

void CheckpointSchedule::set_next_due(Step after) {
  const std::uint64_t every = setup_.config().checkpoint.every_steps;
  if (every != 0) next_due_ = Step((after.value / every + 1) * every);
}

void CheckpointSchedule::note_taken(Instant began, Step step) {
  failed_attempts_ = 0;
  error_.clear();
  newest_at_ = began;
  set_next_due(step);
}

void CheckpointSchedule::note_abandoned(Instant now) {
  next_try_ = now + std::max<Duration>(std::chrono::seconds(1), back_off(failed_attempts_));
}

void CheckpointSchedule::note_failed(const std::string& why, bool holds) {
  ++failed_attempts_;
  error_ = why;
  if (holds) ++failed_saves_;
}

void CheckpointSchedule::drop_generation() {
  is_saved_ = false;
  failed_saves_ = 0;
}

}  // namespace disttrain::chiefd
