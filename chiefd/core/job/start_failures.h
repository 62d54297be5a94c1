// Decides what a job does if a worker can't take part in its start: the worker fails or is lost before its generation
// trains. If enough other workers are there, the job starts without this worker. An example with job.min_workers = 1:
//
//   1. The chief tells worker/0, worker/1 and worker/2 to open the job. worker/1 has too little memory, and fails.
//   2. worker/0 and worker/2 open the job. Nobody is awaited any more.
//   3. The job rolls back and starts again with worker/0 and worker/2. It loses no step, because this generation hasn't
//      trained. worker/1 is left out until its process is another one.
//
// The chief waits in step 2, so that one rollback is enough if several workers fail.
#pragma once

#include <map>
#include <set>
#include <string>

#include "chiefd/core/job/loss.h"
#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Candidates;
class Condition;
class EventLog;
class GenerationPlan;
class Launch;
class Membership;
class Reachability;
class Recovery;
class StageWait;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class StartFailures {
 public:
  explicit StartFailures(JobParts& parts);

  // True if the job may start with so many workers instead of its roster: no rank waits for another one.
  bool may_start_with(std::size_t workers) const;
  // True if the job may start without this worker of its roster. Workers outside the roster count too if they may take
  // part in the next start.
  bool may_start_without(const Turn& turn, const Member& worker) const;
  // How the loss of this worker counts if the job starts again without it. Until a generation trains, each task is
  // spared once. So at most as many starts in a row are spared as there are workers.
  Loss loss_of(TaskId worker) const;

  // In stage kOpen: this worker has failed or is lost. Call it only if may_start_without(). `is_process`: the process
  // is to blame, and stays out; otherwise the worker may join while the job trains.
  void note(Turn& turn, const Member& worker, const Error& error, bool is_process);
  // In stage kOpen: no worker is awaited any more. Goes on to the next stage, or starts again without the workers that
  // have failed.
  void advance(Turn& turn);
  // In stage kOpen: all awaited workers have stood still for too long. Returns false if too few others are left.
  bool give_up_on_awaited(Turn& turn, const Error& error);

  // Leaves the worker's process out of the job, and tells it to release the job.
  void leave_out(Turn& turn, const Member& worker, const std::string& why);

  // Leaves out what has failed, or counts what was lost, in this generation. Called before the generation is dropped,
  // whatever the reason.
  void settle(Turn& turn);

 private:
  struct Failure {
    Error error;
    bool is_process = false;
  };

  std::size_t others_in_roster(const std::set<Member>& without) const;
  std::size_t others_outside(const Turn& turn) const;

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  const WorkerLosses& worker_losses_;
  const Reachability& reachability_;
  Launch& launch_;
  Membership& membership_;
  Recovery& recovery_;

  std::map<Member, Failure> failures_;  // of this generation
};

}  // namespace disttrain::chiefd
