// A ps is silent, or lost. A silent one is waited for, with the workers paused. A lost one costs a rollback: a start
// with another generation. All shards are made anew, from one checkpoint, by whoever is there; workers open the job
// anew; what belongs to the generation before is refused by its number.
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
class JobMembers;
class Loans;
class Membership;
class Pauses;
class Pausing;
class Progress;
class Reclaim;
class Regathering;
class Rollbacks;
class StageWait;
class Suspicions;
class Workers;
struct JobParts;
struct JobSetup;

class Recovery {
 public:
  explicit Recovery(JobParts& parts);

  // A task is silent or gone.
  void on_loss(Turn& turn, const Finding& finding);
  // A ps has been silent for longer than a rollback would cost. True: the job recovers from that.
  bool check_silence(Turn& turn);
  // Rolls back, or begins again where nothing was placed yet. Too many losses fail the job.
  void recover(Turn& turn, const Cause& cause, Loss loss = Loss::kCounts);
  // The current rollback begins; it has been counted, if it is for a loss.
  void roll_back(Turn& turn, Loss loss = Loss::kCounts);

  // How many there were within job.restart_window, this one too. Told, so that the next chief knows of it.
  std::size_t count_loss(Turn& turn, const std::string& kind, const Cause& cause);
  Error too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const;

 private:
  void lose_worker(Turn& turn, const Finding& finding, Loss loss);
  void pause(Turn& turn, const Finding& finding);
  Duration patience_with_ps(Instant silent_since) const;
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
  const JobMembers& members_;
  Gathering& gathering_;
  Loans& loans_;
  Fences& fences_;
  Suspicions& suspicions_;
  Membership& membership_;
  Pausing& pausing_;
  Regathering& regathering_;
  Reclaim& reclaim_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Checkpointing& checkpointing_;
  Closing& closing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
