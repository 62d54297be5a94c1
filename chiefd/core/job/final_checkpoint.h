// Takes the checkpoint after the last step, before the final evaluation. The chief retries a failed attempt for some
// minutes. During this time the ps tasks keep the parameters in memory.
#pragma once

#include <string>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class CheckpointSchedule;
class Checkpointing;
class Condition;
class Ending;
class GenerationPlan;
class Progress;
class StageWait;
struct JobParts;
struct JobSetup;

class FinalCheckpoint {
 public:
  explicit FinalCheckpoint(JobParts& parts);

  // Called when all steps are done. The final evaluation follows when the checkpoint is taken. If the job takes no
  // checkpoints, the evaluation follows at once.
  void take(Turn& turn);
  // Called in stage kFinalCut when an attempt was given up. `fails`: see Checkpointing::abandon().
  void on_abandoned(Turn& turn, const std::string& why, bool fails);
  void fail(Turn& turn, const std::string& why);

 private:
  // Returns "stopped by ann; " if a client has stopped the job. Otherwise empty.
  std::string why_it_ends() const;

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  const Progress& progress_;
  const GenerationPlan& generation_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Ending& ending_;

  Instant until_;
};

}  // namespace disttrain::chiefd
