// Workers leave and join while a job trains: which workers are lost, which are taken, and the roster that follows.
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

  // A worker of this generation is lost. For Loss::kLink the caller has already told the operator.
  void lose(Turn& turn, const Member& worker, const std::string& why, Loss loss = Loss::kCounts);
  // Lets all prepared workers join, but not while a checkpoint is cut: the cut waits for a fixed set of workers.
  void join_prepared(Turn& turn);
  // Makes another roster. It is durable before the pacer hears of it. `lost` is fenced as soon as the roster is
  // durable.
  void change_roster(Turn& turn, std::vector<Member> members, const std::optional<Member>& lost);
  // Chooses another worker for the evaluations during training, if the former one is lost.
  void choose_evaluator(Turn& turn);

  // The worker is connected but isn't taken, for the reason `why`. Reports that once.
  void keep_out(Turn& turn, TaskId worker, const std::string& why);
  std::string lost_too_often(std::size_t losses) const;
  std::string no_place_for(const Tasks& tasks, std::size_t workers) const;

 private:
  void tell_loss(Turn& turn, const Member& worker, const std::string& why, Loss loss);
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
  const Progress& progress_;
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
