// Decides what happens at a stage's deadline. If an awaited task makes progress with long work, the stage gets more
// time. Otherwise the stage ends, in most cases with a failure or a rollback of the job.
#pragma once

#include <string>

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class Closing;
class Condition;
class Ending;
class Evaluators;
class FinalCheckpoint;
class Gathering;
class GenerationPlan;
class Pauses;
class Recovery;
class StageWait;
class StartFailures;
class WorkClock;
struct JobParts;
struct JobSetup;

class Deadlines {
 public:
  explicit Deadlines(JobParts& parts);

  // Returns true if the stage was overdue and has ended. Returns false if it isn't overdue or has got more time.
  bool check(Turn& turn);

 private:
  bool extend(Turn& turn);
  void on_deadline(Turn& turn);
  void give_up(Turn& turn, const std::string& what);
  std::string limit() const;
  TaskId who_stands_still(const Tasks& tasks) const;
  void settle(Turn& turn);
  void leave_behind(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  Candidates& candidates_;
  Pauses& pauses_;
  const WorkClock& work_clock_;
  Gathering& gathering_;
  CheckpointFolder& folder_;
  FinalCheckpoint& final_checkpoint_;
  Recovery& recovery_;
  StartFailures& start_failures_;
  Closing& closing_;
  Evaluators& evaluators_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
