// Handles a job while it trains: the reports of its pacer and workers, and the end of training.
#pragma once

#include <optional>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Checkpointing;
class Condition;
class Ending;
class Faults;
class Fences;
class FinalCheckpoint;
class GenerationPlan;
class Invitations;
class Launch;
class Loans;
class Membership;
class Pauses;
class Progress;
class Quorum;
class Reclaim;
class Rollbacks;
class StageWait;
class WorkerFigures;
class Workers;
struct JobParts;
struct JobSetup;

class TrainingRun {
 public:
  explicit TrainingRun(JobParts& parts);

  void on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat);
  void on_roster_applied(Turn& turn, const RosterApplied& applied);
  void on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished);

  // Ends the training if all workers have finished, or if neither a worker nor any work is left.
  void check_end(Turn& turn);
  // At each tick. Workers may have finished although records are left, because a worker was lost or has joined at the
  // end. In sync the others go on without them. If all have finished, removes those that are there: they come back as
  // other members, and do the rest.
  void review_finished(Turn& turn);
  // True if a worker is evaluating. The other workers may wait for it.
  bool is_evaluating(const Tasks& tasks) const;

 private:
  void note_pacer(Turn& turn, const PacerReport& report);
  bool waits_for_finished() const;

  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  const GenerationPlan& generation_;
  Workers& workers_;
  const Pauses& pauses_;
  WorkerFigures& worker_figures_;
  Faults& faults_;
  Loans& loans_;
  Fences& fences_;
  Membership& membership_;
  Invitations& invitations_;
  Quorum& quorum_;
  Reclaim& reclaim_;
  Checkpointing& checkpointing_;
  FinalCheckpoint& final_checkpoint_;
  Launch& launch_;
  Ending& ending_;

  std::optional<Instant> idle_since_;  // since when waits_for_finished(), and no other worker has finished
};

}  // namespace disttrain::chiefd
