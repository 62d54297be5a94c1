#include "chiefd/core/job/late_disk.h"

#include <string>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"

namespace disttrain::chiefd {

LateDisk::LateDisk(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      condition_(parts.condition),
      progress_(parts.progress),
      workers_(parts.workers),
      pauses_(parts.pauses),
      absences_(parts.absences),
      pausing_(parts.pausing),
      closing_(parts.closing),
      ending_(parts.ending) {}

void LateDisk::review(Turn& turn) {
  const Duration since_tick = turn.now - std::exchange(ticked_, turn.now);
  const std::optional<Ticket> oldest = held_.oldest();
  if (std::exchange(unwritten_, oldest) != oldest || !oldest) unwritten_since_ = turn.now;
  const Duration late = turn.now - unwritten_since_;
  if (late > setup_.timeouts.silent) excuse(since_tick);
  const std::string reason = "the chief's own disk has written no record for " + format_duration(late);
  if (stage_.is(Stage::kClose) && !closing_.is_end_written()) return review_end(turn, late, reason);
  if (late > setup_.timeouts.setup)
    return ending_.fail(
        turn, Error{ErrorCode::kFailed, reason + ": check the disk of chief.state_directory and submit the job again"},
        std::nullopt);
  // In stage kReclaim the workers are back when the chief awaits the pacer's answer.
  const bool may_pause = stage_.is(Stage::kTrain) || (stage_.is(Stage::kReclaim) && stage_.awaits_anyone());
  if (!may_pause) {
    pauses_.set_disk_late(false);
    return;
  }
  const bool is_late = late > setup_.config().job.stall_timeout / 2;
  if (pauses_.set_disk_late(is_late) == is_late) return;
  if (!is_late) return pausing_.resume(turn, "the chief's own disk writes again");
  pausing_.tell_workers(turn, true, reason);
  condition_.set(turn, JobState::kPaused, reason);
}

// Extends the tasks' time limits by `pause`.
void LateDisk::excuse(Duration pause) {
  progress_.excuse(pause);
  stage_.postpone_deadline(pause);
  workers_.postpone_joins(pause);
  pauses_.excuse_shortage(pause);
  absences_.excuse(pause);
}

// The job closes, but the record of its end isn't durable. After Timeouts::setup the chief tells the tasks to release
// the job, although the record still isn't durable.
void LateDisk::review_end(Turn& turn, Duration late, const std::string& reason) {
  if (late > setup_.timeouts.setup) return closing_.begin(turn);
  if (late > setup_.timeouts.silent && !pauses_.set_disk_late(true))
    condition_.set(turn, condition_.state(), condition_.end_reason() + "; " + reason);
}

}  // namespace disttrain::chiefd
