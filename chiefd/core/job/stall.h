// A job that trains and makes no steps: a fence that is late, or a step. Who is to blame is who works longest, or the
// ps tasks where all wait for an answer.
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

  // At each tick of a job that trains: recovers, or fails the job, where it stands still for too long.
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
