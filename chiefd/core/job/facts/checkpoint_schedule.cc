#include "chiefd/core/job/facts/checkpoint_schedule.h"

#include <algorithm>

#include "chiefd/core/restarts.h"

namespace disttrain::chiefd {
namespace {

// In sync, if checkpoint.every_steps makes a checkpoint due, the shards cut exactly at the due step. The chief orders
// this cut this many seconds before it expects the step.
constexpr double kSecondsAhead = 0.5;

}  // namespace

std::optional<Step> CheckpointSchedule::due(Instant now, const Progress& progress, bool is_wanted) const {
  const CheckpointSection& section = setup_.config().checkpoint;
  if (is_wanted) return Step();
  if (section.every > Duration::zero() && now - newest_at_ >= section.every) return Step();
  if (section.every_steps == 0) return std::nullopt;
  const PacerReport& report = progress.report();
  const double seconds = to_seconds(report.training);
  const double rate = seconds > 0 ? static_cast<double>(report.measured_steps) / seconds : 0.0;
  const auto ahead = setup_.is_sync() ? static_cast<std::uint64_t>(rate * kSecondsAhead) : 0;
  const bool is_near = report.global_step.value + ahead >= next_due_ && report.global_step.value > 0;
  if (!is_near) return std::nullopt;
  return setup_.is_sync() ? Step(next_due_) : Step();
}

void CheckpointSchedule::set_next_due(Step after) {
  const std::uint64_t every = setup_.config().checkpoint.every_steps;
  if (every != 0) next_due_ = (after.value / every + 1) * every;
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
