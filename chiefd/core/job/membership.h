// Decides which workers leave and join while a job trains, and makes the next roster.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Checkpointing;
class Condition;
class EventLog;
class Fences;
class GenerationPlan;
class HeldActions;
class JobMembers;
class Launch;
class Leaving;
class Loans;
class Progress;
class Quorum;
class Reachability;
class StageWait;
class TrainingRun;
class WorkerFigures;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Membership {
 public:
  explicit Membership(JobParts& parts);

  // Removes a lost worker of this generation. For Loss::kLink the caller has already told the operator.
  void lose(Turn& turn, const Member& worker, const std::string& why, Loss loss = Loss::kCounts);
  // Counts and reports a lost worker.
  void tell_loss(Turn& turn, const Member& worker, const std::string& why, Loss loss);
  // Lets all prepared workers join. Does nothing while a checkpoint is cut, because the cut waits for a fixed set of
  // workers.
  void join_prepared(Turn& turn);
  // Makes the next roster. It is durable before the chief sends it to the pacer. The chief fences the worker `lost` as
  // soon as the roster is durable.
  void change_roster(Turn& turn, std::vector<Member> members, const std::optional<Member>& lost);
  // If the worker that evaluates during training is lost, chooses another worker for this.
  void choose_evaluator(Turn& turn);

  // Keeps a connected worker out of the job for the reason `why`, and reports this once.
  void keep_out(Turn& turn, TaskId worker, const std::string& why);
  std::string lost_too_often(TaskId worker, Instant now) const;
  std::string no_place_for(const Tasks& tasks, std::size_t workers) const;

 private:
  void forget_predecessors(const Member& worker);
  bool has_work_for(TaskId worker) const;
  bool may_join(Turn& turn, const Member& worker);
  std::vector<Member> roster_with(const Member& worker) const;
  void join(Turn& turn, const Member& worker);

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  EventLog& events_;
  const Condition& condition_;
  Progress& progress_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  WorkerLosses& worker_losses_;
  WorkerFigures& worker_figures_;
  const JobMembers& members_;
  const Reachability& reachability_;
  Launch& launch_;
  Loans& loans_;
  Fences& fences_;
  Quorum& quorum_;
  Checkpointing& checkpointing_;
  Leaving& leaving_;
  TrainingRun& training_;
};

}  // namespace disttrain::chiefd
