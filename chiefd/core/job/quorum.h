// Checks whether a job that trains has the workers that it needs: at least job.min_workers or, with job.on_worker_loss
// = "wait", every rank. Without these workers the job pauses. absences.h bounds the pause.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Checkpointing;
class Condition;
class Ending;
class Loans;
class Pauses;
class Pausing;
class Progress;
class Reachability;
class Rollbacks;
class StageWait;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Quorum {
 public:
  explicit Quorum(JobParts& parts);

  void check(Turn& turn);
  // The workers that the job lacks. Empty if the job can train, or if no work is left.
  std::vector<Awaited> missing(const Tasks& tasks) const;
  // Returns why the job can't train with the workers that it has. Empty if it can.
  std::string shortage(const Turn& turn) const;

  // Returns true if enough other workers are there that may take part.
  bool can_do_without(const Tasks& tasks, TaskId worker, Instant now) const;

  // If too few of the known workers may take part, because the others were lost too often or can't take part, fails the
  // job and returns true.
  bool fail_without_hope(Turn& turn);

 private:
  // If too few of the known workers may take part, because the others were lost too often or are left out, returns one
  // of those. If ranks are fixed, returns a rank's worker that is left out or, while the job trains, a missing one that
  // was lost too often: the job would wait for it although it may not come back.
  std::optional<TaskId> last_hope(const Turn& turn) const;
  bool is_barred(const Task& task) const;
  bool is_work_left() const;

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  Progress& progress_;
  const Workers& workers_;
  const Candidates& candidates_;
  WorkerLosses& worker_losses_;
  Pauses& pauses_;
  const Rollbacks& rollbacks_;
  const Reachability& reachability_;
  Loans& loans_;
  Pausing& pausing_;
  Checkpointing& checkpointing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
