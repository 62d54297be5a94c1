// Detects a training job that stands still: a fence or a step is late. The worker that is longest in a phase of its own
// is to blame. If all workers wait for an answer, the pacer is.
#pragma once

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Condition;
class Ending;
class Fences;
class GenerationPlan;
class Leaving;
class Pauses;
class Progress;
class Reachability;
class Recovery;
class TrainingRun;
class Workers;
struct JobParts;
struct JobSetup;

class Stall {
 public:
  explicit Stall(JobParts& parts);

  // At each tick of a training job: recovers from a late fence, or fails a job that has made no step for too long.
  void check(Turn& turn);

 private:
  void fail(Turn& turn, Duration patience);
  RootCause who_is_waited_for(const Tasks& tasks) const;

  const JobSetup& setup_;
  Condition& condition_;
  Progress& progress_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Pauses& pauses_;
  const Reachability& reachability_;
  Fences& fences_;
  TrainingRun& training_;
  Leaving& leaving_;
  Recovery& recovery_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
