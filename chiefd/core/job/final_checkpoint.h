// The checkpoint after the last step, before the final evaluation. A failed attempt is retried for some minutes: the ps
// tasks hold the parameters meanwhile.
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

  // All steps are done. The evaluation follows once the checkpoint is taken, or at once if the job takes no
  // checkpoints.
  void take(Turn& turn);
  // kFinalCut: an attempt was given up. `fails`: see Checkpointing::abandon().
  void on_abandoned(Turn& turn, const std::string& why, bool fails);
  void fail(Turn& turn, const std::string& why);

 private:
  // "stopped by ann; ".
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
