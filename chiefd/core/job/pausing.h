// Tells the workers of a job to pause, and to go on once no reason for a pause is left (pauses.h).
#pragma once

#include <string>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Condition;
class Fences;
class GenerationPlan;
class Leaving;
class Pauses;
class Progress;
class Requests;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Pausing {
 public:
  explicit Pausing(JobParts& parts);

  void tell_workers(Turn& turn, bool paused, const std::string& reason);
  // One reason for the pause is over. The job goes on unless another reason is left.
  void resume(Turn& turn, const std::string& why);
  bool holds_workers(const Tasks& tasks) const;

 private:
  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  Progress& progress_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Pauses& pauses_;
  Fences& fences_;
  Requests& requests_;
  Leaving& leaving_;
};

}  // namespace disttrain::chiefd
