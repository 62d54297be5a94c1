// Repeats unanswered requests to a task that has a new connection. If the task gets a request twice, the second request
// changes nothing.
#pragma once

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Checkpointing;
class Condition;
class Fences;
class GenerationPlan;
class HeldActions;
class Invitations;
class JobMembers;
class Launch;
class Loans;
class Pausing;
class Reclaim;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Requests {
 public:
  explicit Requests(JobParts& parts);

  // A known member has a new connection.
  void on_reconnect(Turn& turn, const TaskHello& hello);
  // Repeats each FenceWorker that this ps hasn't answered. If the pacer is on this ps, then repeats the roster.
  // Membership::lose() sends both in the same order.
  void repeat_to_ps(Turn& turn, const Member& ps);
  void repeat_in_training(Turn& turn, const Member& member);
  // Sends the pacer the current roster again. If the roster's record isn't durable yet, does nothing, because the
  // roster is sent anyway when the record is durable.
  void repeat_roster(Turn& turn);
  // If the chief waits for the pacer's answer, restarts the time limit for this answer.
  void give_pacer_time(Turn& turn);

 private:
  const JobSetup& setup_;
  StageWait& stage_;
  HeldActions& held_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
  const JobMembers& members_;
  Launch& launch_;
  Loans& loans_;
  Fences& fences_;
  Invitations& invitations_;
  Pausing& pausing_;
  Reclaim& reclaim_;
  Checkpointing& checkpointing_;
};

}  // namespace disttrain::chiefd
