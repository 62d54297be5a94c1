// Tasks that were told to end (SIGTERM) and leave in good order. See LeaveRequest.
//
//   1. A worker stops at its next push boundary. It is then removed like a lost worker, but it has no push under way
//   and
//      doesn't count as a loss.
//   2. Before a ps goes, the workers pause and a checkpoint is taken. The shards apply nothing after it, so the
//   rollback
//      to it costs no step.
#pragma once

#include <optional>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class CheckpointSchedule;
class Checkpointing;
class Closing;
class Condition;
class GenerationPlan;
class JobMembers;
class Pausing;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Leaving {
 public:
  explicit Leaving(JobParts& parts);

  // An owner that was told to end, and whose shards must be saved before it goes.
  std::optional<TaskId> owner(const Tasks& tasks) const;
  // The job doesn't need this task (any more).
  bool may_go(const Member& member) const;
  // Stops workers that were told to end, and takes the checkpoint for an owner that was.
  void advance(Turn& turn);

 private:
  bool may_go_in_training(const Member& member) const;

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  const GenerationPlan& generation_;
  Workers& workers_;
  const JobMembers& members_;
  Pausing& pausing_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Closing& closing_;
};

}  // namespace disttrain::chiefd
