// The chief's own disk is late: see job.h.
//
// Leases, rosters and fences wait for their records, and tasks wait for them. So while a record is late no limit of a
// task runs, and in time the workers are paused, for their own limits would run out. The disk has a limit of its own.
#include "chiefd/core/job.h"

namespace disttrain::chiefd {

void Job::wait_for_disk(Turn& turn) {
  const Instant before = std::exchange(ticked_, turn.now);
  const std::optional<Ticket> oldest = held_.empty() ? std::nullopt : std::optional(held_.begin()->first);
  if (std::exchange(unwritten_, oldest) != oldest || !oldest) unwritten_since_ = turn.now;
  const Duration late = turn.now - unwritten_since_;
  if (late > setup_.timeouts.silent) {
    const Duration since = turn.now - before;
    progress_at_ += since;
    if (deadline_) *deadline_ += since;
    for (auto& [worker, began] : joining_) began += since;
    if (is_short_) short_since_ += since;
  }
  const std::string reason =
      "the chief's own disk has taken no record for " + std::to_string(static_cast<long>(to_seconds(late))) + " s";
  if (stage_ == Stage::kClose && !is_end_written_) {
    // Whoever has ended stays so: its tasks are let go.
    if (late > setup_.timeouts.setup) return begin_closing(turn);
    if (late > setup_.timeouts.silent && !std::exchange(is_disk_late_, true))
      set_state(turn, state_, end_reason_ + "; " + reason);
    return;
  }
  if (late > setup_.timeouts.setup)
    return fail(
        turn, Error{ErrorCode::kFailed, reason + ": check the disk of chief.state_directory and submit the job again"},
        std::nullopt);
  if (stage_ != Stage::kTrain) {
    is_disk_late_ = false;
    return;
  }
  const bool is_late = late > config().job.stall_timeout / 2;
  if (is_late && !is_disk_late_) {
    is_disk_late_ = true;
    pause_workers(turn, true, reason);
    set_state(turn, JobState::kPaused, reason);
  } else if (!is_late && is_disk_late_) {
    is_disk_late_ = false;
    resume(turn, "the chief's own disk writes again");
  }
}

}  // namespace disttrain::chiefd
