// Rolls a job back: the job starts again with the next generation. The connected ps tasks make all shards anew from one
// checkpoint, and the workers open the job again. Messages that carry the number of the earlier generation are refused.
#pragma once

#include <cstddef>
#include <string>

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"
#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

class CheckpointFolder;
class CheckpointSchedule;
class Checkpointing;
class Closing;
class Condition;
class Ending;
class EventLog;
class Fences;
class Gathering;
class GenerationPlan;
class HeldActions;
class Loans;
class Pauses;
class Pausing;
class Progress;
class Regathering;
class Rollbacks;
class StageWait;
class StartFailures;
class Suspicions;
class Workers;
struct JobParts;
struct JobSetup;

class Recovery {
 public:
  explicit Recovery(JobParts& parts);

  // Rolls the job back. If no shard was placed yet, the job only gathers its tasks again. After too many losses the job
  // fails.
  void recover(Turn& turn, const Cause& cause, Loss loss = Loss::kCounts);
  // Begins the rollback that Rollbacks::current() describes. If a loss is the cause, the caller has already counted the
  // loss.
  void roll_back(Turn& turn, Loss loss = Loss::kCounts);

  // Counts a loss. Returns the number of losses within job.restart_window, this one included. Reports an event, so that
  // a restarted chief counts this loss too.
  std::size_t count_loss(Turn& turn, const std::string& kind, const Cause& cause);
  Error too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const;

 private:
  void drop_generation(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  EventLog& events_;
  Condition& condition_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Pauses& pauses_;
  Gathering& gathering_;
  Loans& loans_;
  Fences& fences_;
  StartFailures& start_failures_;
  Suspicions& suspicions_;
  Pausing& pausing_;
  Regathering& regathering_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Closing& closing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
