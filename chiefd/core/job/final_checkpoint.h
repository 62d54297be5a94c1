// The checkpoint after the last step: what was learnt is kept before anything else is done with it. It is tried again
// for some minutes, for the parameters are safe at the ps tasks meanwhile.
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

  // All steps are done. Goes on to the evaluation when it is taken, or where none is asked for.
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
