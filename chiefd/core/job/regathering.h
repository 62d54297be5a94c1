// Decides the next generation of a job that rolls back: which ps tasks own its shards, which workers take part, and how
// many workers the shards get memory for. Then asks for the checkpoint that the generation begins with. The same ps
// tasks as before own the shards again, even if their processes are new. But if one of these ps tasks stays away, the
// shards are placed on any connected ps tasks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class Condition;
class GenerationPlan;
class Invitations;
class Launch;
class Links;
class Membership;
class Quorum;
class Reachability;
class Rollbacks;
class StageWait;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Regathering {
 public:
  explicit Regathering(JobParts& parts);

  // In stage kRegather: goes on if enough tasks are connected.
  void regather(Turn& turn);
  // Called after a restart of the chief. Until this time a generation begins only with all workers of the cluster file:
  // the first one that is back may be one that can't take part.
  void wait_for_workers_until(Instant when) { waits_for_workers_until_ = when; }
  std::vector<Awaited> missing_ps(const Tasks& tasks) const;
  // True if the job can't go on because ps tasks are away, or have too little memory.
  bool lacks_ps(const Tasks& tasks) const { return lacks_memory_ || !missing_ps(tasks).empty(); }
  std::vector<Awaited> missing_workers(const Tasks& tasks, Instant now) const;

 private:
  bool regather_ps(Turn& turn, std::string& problem);
  bool regather_workers(Turn& turn);
  bool regather_memory(Turn& turn);
  void explain(const std::string& shortage);
  // True if the workers that reach all current owners of shards are enough for training.
  bool can_train_with(const Tasks& tasks) const;
  std::vector<Awaited> late_workers(const Turn& turn) const;
  bool is_ready(const Task& task, Instant now) const;
  // The least number of workers that the job trains with.
  std::size_t fewest_workers() const;
  void find_restore(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  Rollbacks& rollbacks_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  WorkerLosses& worker_losses_;
  Links& links_;
  const Reachability& reachability_;
  Invitations& invitations_;
  Membership& membership_;
  Quorum& quorum_;
  CheckpointFolder& folder_;
  Launch& launch_;

  Instant waits_for_workers_until_;
  bool lacks_memory_ = false;  // the ps tasks that are there can't take the shards
};

}  // namespace disttrain::chiefd
