// Tasks that were told to end (SIGTERM) and leave in good order. See LeaveRequest.
//
// A worker stops at its next push boundary; then it goes as a lost one does, but nothing of it is under way, and nobody
// counts it. Before a ps goes, the workers pause and a checkpoint is taken after which nothing is applied, so that the
// rollback to it costs no step.
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

  // Of the owners, one that was told to end, and whose shards are to be saved first.
  std::optional<TaskId> owner(const Tasks& tasks) const;
  // Nothing hangs on this task (any more).
  bool may_go(const Member& member) const;
  // Sees to it that those who were told to end may go soon.
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
