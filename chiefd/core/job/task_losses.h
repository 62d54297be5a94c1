// Handles a silent or lost task of a job, at each stage. While a ps is silent the workers pause and the job waits for
// the ps. A rollback would lose the training since the newest checkpoint, so the job waits about as long as this
// training took. The loss of a ps leads to a rollback (recovery.h). After the loss of a worker the other workers go on
// (membership.h).
#pragma once

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointSchedule;
class Checkpointing;
class Closing;
class Condition;
class Ending;
class GenerationPlan;
class JobMembers;
class Membership;
class Pauses;
class Pausing;
class Reclaim;
class Recovery;
class Regathering;
class StageWait;
class StartFailures;
class Workers;
struct JobParts;
struct JobSetup;

class TaskLosses {
 public:
  explicit TaskLosses(JobParts& parts);

  void on_loss(Turn& turn, const Finding& finding);
  // Called at each tick. Rolls the job back if a ps has been silent for too long. Returns true if it did.
  bool check_silence(Turn& turn);

 private:
  void lose_worker(Turn& turn, const Finding& finding, Loss loss);
  void lose_at_start(Turn& turn, const Finding& finding, Loss loss);
  void pause(Turn& turn, const Finding& finding);
  Duration patience_with_ps(Instant silent_since) const;

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  Pauses& pauses_;
  const JobMembers& members_;
  Membership& membership_;
  Pausing& pausing_;
  Regathering& regathering_;
  Reclaim& reclaim_;
  Recovery& recovery_;
  StartFailures& start_failures_;
  const CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Closing& closing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
