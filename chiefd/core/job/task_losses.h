// A task of a job is silent or gone: what that means at each stage. A silent ps is waited for, with the workers paused,
// for as long as a rollback would cost. A ps that is lost costs a rollback (recovery.h); a worker costs itself alone
// (membership.h).
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
  // At each tick: a ps has been silent for too long. True: the job recovers from that.
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
