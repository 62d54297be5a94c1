// Goes on with a job that was training when the chief was restarted. Each task of the job says hello with the
// generation that it holds. If all ps tasks still hold the current generation, the job goes on and loses no step.
// Otherwise it rolls back.
//
//   1. begin(): the stage is kReclaim. The chief waits for the tasks.
//   2. on_hello(), once for each task: the task counts as back if it still holds the generation.
//   3. All tasks are back, or the time limit for the workers is over. The pacer gets a roster without the missing
//      workers.
//   4. on_pacer_answer(): the pacer has reported the job's step. The stage is kTrain.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Condition;
class EventLog;
class Fences;
class GenerationPlan;
class HeldActions;
class JobMembers;
class Launch;
class Loans;
class Membership;
class Pausing;
class Progress;
class Recovery;
class Requests;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Reclaim {
 public:
  explicit Reclaim(JobParts& parts);

  void begin(Turn& turn);
  // A task of the job has said hello.
  void on_hello(Turn& turn, const TaskHello& hello);
  // A worker was lost again before all tasks were back.
  void on_gone(const Member& member) { reclaimed_.erase(member); }
  // Called at each tick. Goes on when all tasks are back or their time is over.
  void advance(Turn& turn);
  // The pacer has the roster and has reported its ledger.
  void on_pacer_answer(Turn& turn);
  bool is_back(const Member& member) const { return reclaimed_.count(member) != 0; }

  // Notes the name of a task that was told to end. If the task is gone when the other tasks are back, this doesn't
  // count as a loss.
  void note_told_to_end(const std::string& task) { told_to_end_.insert(task); }
  void note_joined(const std::string& task) { told_to_end_.erase(task); }
  void forget_told_to_end() { told_to_end_.clear(); }

 private:
  void check_pacer(Turn& turn);
  void go_on(Turn& turn);
  std::vector<Member> drop_missing_workers(Turn& turn);
  Loss loss_of(TaskId task) const;

  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  EventLog& events_;
  Condition& condition_;
  Progress& progress_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  const JobMembers& members_;
  Launch& launch_;
  Loans& loans_;
  Fences& fences_;
  Requests& requests_;
  Membership& membership_;
  Pausing& pausing_;
  Recovery& recovery_;

  std::set<Member> reclaimed_;
  std::set<std::string> told_to_end_;
  Instant workers_until_;  // at this time the job goes on without the missing workers
};

}  // namespace disttrain::chiefd
