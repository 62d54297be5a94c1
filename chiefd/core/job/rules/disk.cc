#include "chiefd/core/job/rules/disk.h"

#include "common/format_duration.h"

namespace disttrain::chiefd::rules {

std::string unwritten_for(Duration late) {
  return "the chief's own disk has written no record for " + format_duration(late);
}

Verdict late_disk(const JobFacts& job, Duration late) {
  const std::string reason = unwritten_for(late);
  if (late > job.setup.timeouts.setup)
    return Fail{
        Error{ErrorCode::kFailed, reason + ": check the disk of chief.state_directory and submit the job again"}};
  // In stage kReclaim the workers are back when the chief awaits the pacer's answer.
  const bool may_pause = job.stage.is(Stage::kTrain) || (job.stage.is(Stage::kReclaim) && job.stage.awaits_anyone());
  const bool is_late = may_pause && late > job.setup.config().job.stall_timeout / 2;
  if (is_late == job.pauses.is_disk_late()) return Stay{};
  if (is_late) return PauseForDisk{reason};
  return EndDiskPause{may_pause ? "the chief's own disk writes again" : ""};
}

}  // namespace disttrain::chiefd::rules
