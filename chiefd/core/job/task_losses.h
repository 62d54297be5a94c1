// Handles a silent or lost task of a job at each stage. For a silent ps the workers pause and the job waits, for about
// as long as the training that a rollback would lose. A lost ps costs a rollback (recovery.h). A lost worker costs only
// itself (membership.h).
#pragma once

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

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
class Workers;
struct JobParts;
struct JobSetup;

class TaskLosses {
 public:
  explicit TaskLosses(JobParts& parts);

  void on_loss(Turn& turn, const Finding& finding);
  // At each tick: recovers if a ps has been silent for too long. True: it does.
  bool check_silence(Turn& turn);

 private:
  void lose_worker(Turn& turn, const Finding& finding, Loss loss);
  void pause(Turn& turn, const Finding& finding);
  Duration patience_with_ps(Instant silent_since) const;

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Pauses& pauses_;
  const JobMembers& members_;
  Membership& membership_;
  Pausing& pausing_;
  Regathering& regathering_;
  Reclaim& reclaim_;
  Recovery& recovery_;
  const CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Closing& closing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
