// Handles a slow disk of the chief. Lease grants, rosters and fences are sent only when their records are durable, and
// the tasks wait for these messages. So while a record is late, no time limit of a task runs. When a record is late by
// half of job.stall_timeout, the workers are paused, because their own time limits would run out. When a record is late
// by Timeouts::setup, the job fails.
#pragma once

#include <optional>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Absences;
class Closing;
class Condition;
class Ending;
class HeldActions;
class Pauses;
class Pausing;
class Progress;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class LateDisk {
 public:
  explicit LateDisk(JobParts& parts);

  // At each tick.
  void review(Turn& turn);

 private:
  void excuse(Duration pause);
  void review_end(Turn& turn, Duration late, const std::string& reason);

  const JobSetup& setup_;
  StageWait& stage_;
  const HeldActions& held_;
  Condition& condition_;
  Progress& progress_;
  Workers& workers_;
  Pauses& pauses_;
  Absences& absences_;
  Pausing& pausing_;
  Closing& closing_;
  Ending& ending_;

  Instant ticked_;
  std::optional<Ticket> unwritten_;  // the oldest record that isn't durable yet
  Instant unwritten_since_;
};

}  // namespace disttrain::chiefd
