// Lets tasks that were told to end (SIGTERM) leave in good order. See LeaveRequest.
//
//   1. A worker stops between two pushes. The job then removes it like a lost worker, but no push is under way, and the
//      removal doesn't count as a loss.
//   2. Before a ps leaves, the workers pause and the job takes a checkpoint. The shards apply nothing after this
//      checkpoint, so the rollback to it loses no step.
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

  // Returns a ps that owns shards and was told to end. The job must save its shards before the ps leaves. None if there
  // is no such ps.
  std::optional<TaskId> owner(const Tasks& tasks) const;
  // True if the task may leave. False while the job still needs the task, for example until its shards are saved.
  bool may_go(const Member& member) const;
  // Stops the workers that were told to end. If a ps was told to end, begins the checkpoint that must be taken before
  // it leaves, or goes on with this checkpoint.
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
