// What brings a job to its end: its last step, a client's stop or kill, a failure. closing.h then releases its tasks.
#pragma once

#include <optional>
#include <string>

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"
#include "common/result.h"

namespace disttrain::chiefd {

class Checkpointing;
class Closing;
class Condition;
class GenerationPlan;
class HeldActions;
class Pauses;
class Progress;
class Quorum;
class Recovery;
class Rollbacks;
class StageWait;
class Suspicions;
class TrainingRun;
class Workers;
struct JobParts;
struct JobSetup;

class Ending {
 public:
  explicit Ending(JobParts& parts);

  void stop(Turn& turn, const std::string& user);
  void kill(Turn& turn, const std::string& user);
  // `root`: the task to blame, if there is one.
  void fail(Turn& turn, Error error, std::optional<TaskId> root);

  // The job is being stopped: tells the workers to finish their step.
  void end_steps(Turn& turn);
  // Every worker has finished: a report of the pacer that has all pushes. The one on its last heartbeat may be older.
  void on_all_finished(Turn& turn);
  // The final evaluation, by one worker. `loss`: of the worker that was to evaluate before.
  void evaluate(Turn& turn, Loss loss = Loss::kCounts);
  void on_evaluated(Turn& turn, const Member& from, const Evaluated& evaluated);

 private:
  void release(Turn& turn, const std::string& reason);

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  Condition& condition_;
  Progress& progress_;
  const Rollbacks& rollbacks_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Pauses& pauses_;
  Suspicions& suspicions_;
  Recovery& recovery_;
  Quorum& quorum_;
  TrainingRun& training_;
  Checkpointing& checkpointing_;
  Closing& closing_;
};

}  // namespace disttrain::chiefd
