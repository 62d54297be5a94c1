// Ends a job: after its last step, after a stop or kill by a client, or after a failure. closing.h then makes the tasks
// release the job.
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
class Evaluators;
class EventLog;
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
  // Fails the job. `root` is the task to blame, if there is one.
  void fail(Turn& turn, Error error, std::optional<TaskId> root);

  // Lets a job that trains finish before it has done all its steps. Does nothing if it doesn't train, or is stopping
  // already.
  void stop_early(Turn& turn, const std::string& reason);

  // Tells the workers of a job that is being stopped to finish their steps.
  void end_steps(Turn& turn);
  // Called when every worker has finished. Asks the pacer for a report that includes all pushes, because the report in
  // the pacer's last heartbeat may be older.
  void on_all_finished(Turn& turn);
  // Starts the final evaluation: waits for the evaluators, or lets one worker evaluate.
  void evaluate(Turn& turn, Loss loss = Loss::kCounts);
  // Called in stage kEvaluate when the job doesn't wait for evaluators any more. Closes the job if the parameters of
  // its last step were evaluated. Otherwise one worker evaluates them. If no worker is left, the job rolls back, and
  // `loss` says why the last worker was lost.
  void finish_evaluation(Turn& turn, Loss loss = Loss::kCounts);
  void on_evaluated(Turn& turn, const Member& from, const Evaluated& evaluated);
  // The worker's own program has failed in the final evaluation. Lets another worker evaluate. If no other worker is
  // left, the job fails. It doesn't roll back, because the program would fail again with the same parameters.
  void on_evaluation_failed(Turn& turn, const Member& from, const Error& error);

 private:
  void release(Turn& turn, const std::string& reason);
  void finish(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  EventLog& events_;
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
  Evaluators& evaluators_;
  Closing& closing_;
};

}  // namespace disttrain::chiefd
