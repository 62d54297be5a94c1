// Detects a training job that makes no progress: the answer to a fence is late, or no step is made. If no step is made,
// blames the worker that has been longest in a phase of its own, such as computing. If all workers wait for an answer
// of a ps, blames the pacer.
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
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Stall {
 public:
  explicit Stall(JobParts& parts);

  // Called at each tick of a training job. If a fence is late, rolls the job back. If the job has made no step for too
  // long, fails the job.
  void check(Turn& turn);

 private:
  void fail(Turn& turn, Duration patience);
  RootCause who_is_waited_for(const Tasks& tasks) const;

  const JobSetup& setup_;
  Condition& condition_;
  Progress& progress_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const WorkerLosses& worker_losses_;
  const Pauses& pauses_;
  const Reachability& reachability_;
  Fences& fences_;
  TrainingRun& training_;
  Leaving& leaving_;
  Recovery& recovery_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
